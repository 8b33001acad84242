package embedded

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/storage/wal"

	"github.com/gorun/gorun/env/auth"
)

const maxIdentity = 64 << 10 // bytes of the file that says whose data it is

// A directory has a server's data, and belongs to one process at a time.
type directory struct {
	path      string
	temporary bool
	lock      *fileutil.LockedFile // its content is whose data it is
}

// openDirectory makes the directory of a server. It fails if another process has it, or if its data is another server's.
func openDirectory(c *Config) (*directory, error) {
	d := &directory{path: c.Dir, temporary: c.Dir == ""}
	var err error
	if d.temporary {
		d.path, err = os.MkdirTemp(c.TempDir, "gorun-rendezvous-")
	} else {
		err = os.MkdirAll(d.path, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot create the directory of the rendezvous: %w", err)
	}
	if err := d.take(c.identity()); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

// take locks the directory: etcd would wait for a lock of its own for ever.
func (d *directory) take(owner string) error {
	name := filepath.Join(d.path, "owner")
	lock, err := fileutil.TryLockFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fileutil.ErrLocked) {
		return fmt.Errorf("directory %s is in use by another gorun: choose another, or end that one", d.path)
	}
	var text []byte
	if err == nil {
		d.lock = lock
		text, err = io.ReadAll(io.LimitReader(lock, maxIdentity))
	}
	if err == nil && len(text) == 0 {
		text = []byte(owner)
		_, err = lock.Write(text)
	}
	switch {
	case err != nil:
		return fmt.Errorf("cannot use the directory of the rendezvous: %w", err)
	case string(text) != owner:
		return fmt.Errorf("directory %s has the data of another rendezvous (%.300q): choose another, or remove it", d.path, text)
	}
	return nil
}

// hasMember reports whether the data of a member is there.
func (d *directory) hasMember() bool { return wal.Exist(filepath.Join(d.path, "member", "wal")) }

// clearMember removes what a member that could not start has left.
func (d *directory) clearMember() error { return os.RemoveAll(filepath.Join(d.path, "member")) }

// close gives the directory up, and removes it if it is temporary, otherwise the certificates in it.
func (d *directory) close() error {
	if d.temporary {
		err := os.RemoveAll(d.path)
		if d.lock != nil {
			err = errors.Join(err, d.lock.Close())
		}
		return err
	}
	if d.lock == nil { // another process has it
		return nil
	}
	return errors.Join(os.RemoveAll(filepath.Join(d.path, "tls")), d.lock.Close())
}

// writeTLS writes what etcd must have as files for its peers: the authority, a certificate and its key, but never the key
// of the authority. Writing them again replaces the certificate.
func (d *directory) writeTLS(own *auth.Identity, now time.Time) (transport.TLSInfo, error) {
	dir := filepath.Join(d.path, "tls")
	f := Files{CA: filepath.Join(dir, "ca.pem"), Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	info := f.tls()
	info.ServerName = own.Name()
	cert, err := own.Certificate(now)
	if err != nil {
		return info, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(own.Key())
	if err != nil {
		return info, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return info, err
	}
	return info, errors.Join(
		writePEM(f.CA, "CERTIFICATE", own.Authority().Raw),
		writePEM(f.Key, "PRIVATE KEY", key),
		writePEM(f.Cert, "CERTIFICATE", cert.Certificate[0]),
	)
}

// writePEM replaces a file as a whole: handshakes read it at any time.
func writePEM(name, kind string, der []byte) error {
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(name+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}
