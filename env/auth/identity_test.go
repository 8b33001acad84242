package auth

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/hex"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestAuthorityIsForEver: nodes of every build make the same key. The key was computed by another program, from the RFCs.
func TestAuthorityIsForEver(t *testing.T) {
	a, err := newAuthority([]byte("correct horse battery staple"), "rendezvous")
	if err != nil {
		t.Fatal(err)
	}
	const want = "eeaa47f275e7c622e276a88039375d539ffbb3923178ce29f72baf71ef35e1a2"
	if got := hex.EncodeToString(a.cert.PublicKey.(ed25519.PublicKey)); got != want {
		t.Errorf("the authority's key is %s, want %s", got, want)
	}
	again, err := newAuthority([]byte("correct horse battery staple"), "rendezvous")
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
		own, err := NewIdentity(secrets[0], "test")
		if err != nil {
			t.Fatal(err)
		}
		made, err := own.Certificate(now)
		if err != nil {
			t.Fatal(err)
		}
		cert, err := x509.ParseCertificate(made.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		for i, secret := range secrets {
			other, err := NewIdentity(secret, "test")
			if err != nil {
				t.Fatal(err)
			}
			_, err = cert.Verify(x509.VerifyOptions{Roots: other.pool(), DNSName: own.Name(), CurrentTime: now.Add(apart)})
			if got, want := err == nil, i == 0 && apart.Abs() <= validity; got != want {
				t.Errorf("secret %d, %v apart: believed %t, want %t: %v", i, apart, got, want, err)
			}
		}
	})
}

// TestRenewal: a certificate is made again long before it expires, also if the clock has been put back.
func TestRenewal(t *testing.T) {
	own, err := NewIdentity(slices.Repeat([]byte("s"), MinSecret), "test")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1.7e9, 0)
	first, err := own.Certificate(now)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		after time.Duration
		same  bool
	}{{Renewal - 1, true}, {1 - Renewal, true}, {Renewal, false}, {-Renewal, false}} {
		if _, err := own.Certificate(now); err != nil {
			t.Fatal(err)
		}
		own.cert, own.made = first, now
		again, err := own.Certificate(now.Add(c.after))
		if err != nil || (again == first) != c.same {
			t.Errorf("after %v: the same %t, %v", c.after, again == first, err)
		}
	}
}
