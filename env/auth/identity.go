package auth

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"sync"
	"time"
)

const (
	// validity is how long before and after it is made a certificate is good: clocks may differ by as much.
	validity = 7 * 24 * time.Hour
	// Renewal is after how long another one is made.
	Renewal = 24 * time.Hour
)

// An authority signs certificates. Everybody who has the secret gets the same authority.
//
// Its key is an Ed25519 key (RFC 8032). The seed is derived from the secret by HKDF-SHA-256 (RFC 5869), without a salt and
// with the realm in the info. Both are defined to the last bit, so nodes of different builds agree.
type authority struct {
	key  ed25519.PrivateKey
	cert *x509.Certificate
	name string // in every certificate: who holds the secret is let in, whatever their address
}

func newAuthority(secret []byte, realm string) (*authority, error) {
	if len(secret) < MinSecret {
		return nil, fmt.Errorf("the token has %d bytes: want at least %d", len(secret), MinSecret)
	}
	seed, err := hkdf.Key(sha256.New, secret, nil, "gorun "+realm+" certificate authority 1", ed25519.SeedSize)
	if err != nil {
		return nil, err
	}
	key := ed25519.NewKeyFromSeed(seed)
	public := key.Public().(ed25519.PublicKey)
	id := sha256.Sum256(public)
	template := &x509.Certificate{ // the same for ever
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "gorun " + realm},
		NotBefore:             time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:              time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
		SubjectKeyId:          id[:20],
	}
	der, err := x509.CreateCertificate(nil, template, template, public, key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &authority{key: key, cert: cert, name: "gorun-" + realm}, err
}

// issue returns a certificate for a key, for both servers and clients.
func (a *authority) issue(key ed25519.PrivateKey, now time.Time) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	return x509.CreateCertificate(nil, &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: a.name},
		DNSNames:     []string{a.name},
		NotBefore:    now.Add(-validity),
		NotAfter:     now.Add(validity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, key.Public(), a.key)
}

// An Identity is a key of this process, with its current certificate. Only holders of the same secret trust it.
type Identity struct {
	authority *authority
	key       ed25519.PrivateKey

	mu   sync.Mutex
	cert *tls.Certificate
	made time.Time // of cert
}

// NewIdentity derives an identity from a secret. The realm names its purpose: identities of the same secret for
// different purposes do not trust each other.
func NewIdentity(secret []byte, realm string) (*Identity, error) {
	a, err := newAuthority(secret, realm)
	if err != nil {
		return nil, err
	}
	_, key, err := ed25519.GenerateKey(nil)
	return &Identity{authority: a, key: key}, err
}

// Name returns the DNS name in all certificates of the realm.
func (i *Identity) Name() string { return i.authority.name }

// Authority returns the certificate of the authority that signs the identity's certificates.
func (i *Identity) Authority() *x509.Certificate { return i.authority.cert }

// Key returns the private key of the certificates.
func (i *Identity) Key() ed25519.PrivateKey { return i.key }

// Certificate returns a certificate that is valid now and for some time to come.
func (i *Identity) Certificate(now time.Time) (*tls.Certificate, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.cert != nil && now.Sub(i.made).Abs() < Renewal {
		return i.cert, nil
	}
	der, err := i.authority.issue(i.key, now)
	if err != nil {
		return nil, err
	}
	i.cert, i.made = &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: i.key}, now
	return i.cert, nil
}

func (i *Identity) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(i.authority.cert)
	return pool
}

// ServerTLS returns a configuration that accepts only clients with the same secret.
func (i *Identity) ServerTLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		ClientCAs:  i.pool(),
		ClientAuth: tls.RequireAndVerifyClientCert,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return i.Certificate(time.Now())
		},
	}
}

// ClientTLS returns a configuration that accepts only servers with the same secret. It checks this itself and ignores
// ServerName, because an etcd client sets that to the host that it dials.
func (i *Identity) ClientTLS() *tls.Config {
	pool := i.pool()
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // but see VerifyConnection
		VerifyConnection: func(state tls.ConnectionState) error {
			_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{
				Roots: pool, DNSName: i.Name(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
			})
			if err != nil {
				return &tls.CertificateVerificationError{UnverifiedCertificates: state.PeerCertificates, Err: err}
			}
			return nil
		},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return i.Certificate(time.Now())
		},
	}
}
