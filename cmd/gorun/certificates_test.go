package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// A signer is a certificate that may sign others.
type signer struct {
	cert *x509.Certificate
	key  ed25519.PrivateKey
}

// certificates writes PEM files into the script's directory: ca.pem, and server.pem and client.pem that it has signed, for
// 127.0.0.1 and localhost; stranger.pem is another authority, and signs itself. Their keys are in files that end in .key.
func certificates(ts *testscript.TestScript, _ bool, _ []string) {
	ca := issue(ts, "ca", nil)
	issue(ts, "server", ca)
	issue(ts, "client", ca)
	issue(ts, "stranger", nil)
}

// issue makes a certificate; by nil is one that signs itself.
func issue(ts *testscript.TestScript, name string, by *signer) *signer {
	public, key, err := ed25519.GenerateKey(nil)
	ts.Check(err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	ts.Check(err)
	cert := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true, IsCA: by == nil,
	}
	if by == nil {
		by = &signer{cert, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, by.cert, public, by.key)
	ts.Check(err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	ts.Check(err)
	for file, block := range map[string]*pem.Block{name + ".pem": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "PRIVATE KEY", Bytes: secret}} {
		ts.Check(os.WriteFile(ts.MkAbs(file), pem.EncodeToMemory(block), 0o600))
	}
	cert, err = x509.ParseCertificate(der)
	ts.Check(err)
	return &signer{cert, key}
}
