package embedded

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gorun/gorun/rendezvous"
)

// stranger is a certificate that says what ours do, and that nobody has signed.
func stranger(t *testing.T) tls.Certificate {
	t.Helper()
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"gorun-" + realm},
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
	others := stranger(t)
	authority, err := x509.ParseCertificate(others.Certificate[0])
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
	}, authority, public, others.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := &Files{CA: filepath.Join(dir, "ca"), Cert: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key")}
	if err := errors.Join(writePEM(files.CA, "CERTIFICATE", authority.Raw), writePEM(files.Cert, "CERTIFICATE", der), writePEM(files.Key, "PRIVATE KEY", pkcs8)); err != nil {
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
