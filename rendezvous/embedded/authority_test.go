package embedded

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/rendezvous"
)

// TestAuthorityIsForEver: nodes of every build make the same key. The key was computed by another program, from the RFCs.
func TestAuthorityIsForEver(t *testing.T) {
	a, err := newAuthority([]byte("correct horse battery staple"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "eeaa47f275e7c622e276a88039375d539ffbb3923178ce29f72baf71ef35e1a2"
	if got := hex.EncodeToString(a.cert.PublicKey.(ed25519.PublicKey)); got != want {
		t.Errorf("the authority's key is %s, want %s", got, want)
	}
	again, err := newAuthority([]byte("correct horse battery staple"))
	if err != nil || !bytes.Equal(a.cert.Raw, again.cert.Raw) {
		t.Errorf("the authority's certificate is another one each time: %v", err)
	}
}

// TestCertificates: whoever has a secret is believed by whoever has the same one, if their clocks are less than a week
// apart, and by nobody else.
func TestCertificates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secrets := rapid.SliceOfNDistinct(rapid.SliceOfN(rapid.Byte(), MinSecret, 40), 2, 2, func(b []byte) string { return string(b) }).Draw(t, "secrets")
		now := time.Unix(rapid.Int64Range(1.6e9, 4e9).Draw(t, "now"), 0)
		apart := time.Duration(rapid.Int64Range(int64(-2*validity), int64(2*validity)).Draw(t, "apart")).Truncate(time.Second)
		own, err := newIdentity(secrets[0])
		if err != nil {
			t.Fatal(err)
		}
		made, err := own.certificate(now)
		if err != nil {
			t.Fatal(err)
		}
		cert, err := x509.ParseCertificate(made.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		for i, secret := range secrets {
			other, err := newIdentity(secret)
			if err != nil {
				t.Fatal(err)
			}
			_, err = cert.Verify(x509.VerifyOptions{Roots: other.pool(), DNSName: serverName, CurrentTime: now.Add(apart)})
			if got, want := err == nil, i == 0 && apart.Abs() <= validity; got != want {
				t.Errorf("secret %d, %v apart: believed %t, want %t: %v", i, apart, got, want, err)
			}
		}
	})
}

// TestRenewal: a certificate is made again long before it expires, also if the clock has been put back.
func TestRenewal(t *testing.T) {
	own, err := newIdentity(secret)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1.7e9, 0)
	first, err := own.certificate(now)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		after time.Duration
		same  bool
	}{{renewal - 1, true}, {1 - renewal, true}, {renewal, false}, {-renewal, false}} {
		if _, err := own.certificate(now); err != nil {
			t.Fatal(err)
		}
		own.cert, own.made = first, now
		again, err := own.certificate(now.Add(c.after))
		if err != nil || (again == first) != c.same {
			t.Errorf("after %v: the same %t, %v", c.after, again == first, err)
		}
	}
}

// stranger is a certificate that says what ours do, and that nobody has signed.
func stranger(t *testing.T) tls.Certificate {
	t.Helper()
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{serverName},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestWhoIsLetIn tries the doors of a member, that for clients and that for members.
func TestWhoIsLetIn(t *testing.T) {
	servers := startAll(t, three(t, secret))
	another := clientTLS(t, []byte("another secret of somebody"))
	another.VerifyConnection = nil // it would not talk to us either
	for name, c := range map[string]struct {
		credentials *tls.Config
		let         bool
	}{
		"right secret":   {clientTLS(t, secret), true},
		"wrong secret":   {another, false},
		"no certificate": {&tls.Config{InsecureSkipVerify: true}, false},
		"self-signed":    {&tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{stranger(t)}}, false},
		"TLS 1.2":        {&tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12, GetClientCertificate: clientTLS(t, secret).GetClientCertificate}, false},
		"no TLS":         {nil, false},
	} {
		for door, e := range map[string]rendezvous.Endpoint{"clients": servers[0].config.Self, "members": peerOf(servers[0].config.Self)} {
			err := knock(t, c.credentials, e)
			if (err == nil) != c.let {
				t.Errorf("%s at the door of %s: let in %t, want %t: %v", name, door, err == nil, c.let, err)
			}
		}
	}
}

// knock begins a conversation in HTTP/2, and returns nil if there is an answer, be it that HTTP/1.1 is wanted.
func knock(t *testing.T, credentials *tls.Config, e rendezvous.Endpoint) error {
	t.Helper()
	raw, err := net.Dial("tcp", e.String())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if err := raw.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	conn := raw
	if credentials != nil {
		credentials = credentials.Clone()
		credentials.NextProtos = []string{"h2"}
		conn = tls.Client(raw, credentials)
	}
	if _, err := io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"); err != nil {
		return err
	}
	answer := make([]byte, 16)
	n, err := conn.Read(answer)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s is silent", e)
	}
	if n > 0 {
		return nil
	}
	return err
}

// TestClientRefusesAnotherServer: a client does not tell a stranger anything.
func TestClientRefusesAnotherServer(t *testing.T) {
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{stranger(t)}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = c.Read(make([]byte, 1))
			c.Close()
		}
	}()
	_, err = tls.Dial("tcp", l.Addr().String(), clientTLS(t, secret))
	var refused *tls.CertificateVerificationError
	if !errors.As(err, &refused) {
		t.Errorf("got %v", err)
	}
}

// TestFiles: certificates of an authority that others have made do as well, if they are for the endpoint's host.
func TestFiles(t *testing.T) {
	a, err := newAuthority(secret)
	if err != nil {
		t.Fatal(err)
	}
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}, a.cert, public, a.key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := &Files{CA: filepath.Join(dir, "ca"), Cert: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key")}
	if err := errors.Join(writePEM(files.CA, "CERTIFICATE", a.cert.Raw), writePEM(files.Cert, "CERTIFICATE", der), writePEM(files.Key, "PRIVATE KEY", pkcs8)); err != nil {
		t.Fatal(err)
	}
	configs := three(t, nil)
	for i := range configs {
		configs[i].Files = files
	}
	servers := startAll(t, configs)
	credentials, err := files.tls().ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	put(t, client(t, credentials, servers[0].config.Self), "a", "1")
	if got := get(t, client(t, credentials, servers[1].config.Self), "a"); got != "1" {
		t.Errorf("a is %q", got)
	}
	for _, e := range []rendezvous.Endpoint{servers[0].config.Self, peerOf(servers[0].config.Self)} {
		if err := knock(t, &tls.Config{InsecureSkipVerify: true}, e); err == nil {
			t.Errorf("somebody without a certificate is let in at %s", e)
		}
	}
}
