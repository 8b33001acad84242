package embedded

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"go.etcd.io/etcd/server/v3/etcdserver/api/rafthttp"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/gorun/gorun/env/auth/admission"
)

// Whoever connects, as a client or as another member, has to prove itself first, see package admission: by TLS with the secret or
// the certificates of the rendezvous. Where there are none, on loopback, it only has to speak HTTP.

// admissions is what bounds those who have not proven themselves at a port.
func (s *Server) admissions(l net.Listener, port string) *admission.Listener {
	return admission.Listen(l, admission.Config{Time: handshake, Log: s.config.Logger.With("port", port).Info})
}

// clientCredentials are those of the server, for gRPC.
func clientCredentials(config *tls.Config) credentials.TransportCredentials {
	if config == nil {
		return &admitting{plain{insecure.NewCredentials()}}
	}
	return &admitting{credentials.NewTLS(config)}
}

// An admitting server admits who has completed the handshake.
type admitting struct {
	credentials.TransportCredentials
}

func (a *admitting) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	client := raw.(*clientConn)
	conn, info, err := a.TransportCredentials.ServerHandshake(raw)
	if err == nil && !client.admit() {
		err = errors.Join(net.ErrClosed, raw.Close())
	}
	if err != nil {
		client.Conn.(*admission.Conn).TurnedAway(err)
	}
	return conn, info, err
}

func (a *admitting) Clone() credentials.TransportCredentials { return a }

// http2Preface is what a client of HTTP/2 says first.
const http2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// plain is a handshake without secrets: the beginning of HTTP/2.
type plain struct {
	credentials.TransportCredentials
}

func (plain) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	preface := make([]byte, len(http2Preface))
	if _, err := io.ReadFull(raw, preface); err != nil {
		return nil, nil, errors.Join(err, raw.Close())
	}
	if string(preface) != http2Preface {
		return nil, nil, errors.Join(errors.New("not HTTP/2"), raw.Close())
	}
	return &unread{raw, io.MultiReader(bytes.NewReader(preface), raw)}, nil, nil
}

// An unread connection begins with bytes that have been read before.
type unread struct {
	net.Conn
	all io.Reader
}

func (u *unread) Read(b []byte) (int, error) { return u.all.Read(b) }

// admitMember admits a connection without TLS once it has made a request. The server for members calls it whenever the state of a connection
// changes.
func admitMember(conn net.Conn, state http.ConnState) {
	if state != http.StateActive {
		return
	}
	if c, ok := conn.(*timed); ok && !c.Conn.(*admission.Conn).Admit() {
		_ = c.Close()
	}
}

// memberListener returns the listener of the server for other members. credentials are those for TLS; nil: there are none.
func memberListener(l *admission.Listener, credentials *tls.Config) net.Listener {
	members := &timedListener{l, rafthttp.ConnReadTimeout, rafthttp.ConnWriteTimeout}
	if credentials == nil {
		return members
	}
	return newTLSListener(members, credentials)
}

// A tlsListener admits connections that have completed the handshake, before they make a request. A member may dial more connections than it
// needs at once: those without a request are not strangers.
type tlsListener struct {
	timed   *timedListener
	config  *tls.Config
	proven  chan net.Conn // that have completed the handshake
	done    chan struct{} // closed by Close
	close   func() error  // closes it the first time, and returns the same error again
	running sync.WaitGroup
}

// newTLSListener returns a tlsListener, which accepts connections until Close.

func newTLSListener(l *timedListener, config *tls.Config) *tlsListener {
	t := &tlsListener{timed: l, config: config, proven: make(chan net.Conn), done: make(chan struct{})}
	t.close = sync.OnceValue(func() error {
		close(t.done)
		err := l.Close() // which ends all handshakes
		t.running.Wait()
		return err
	})
	t.running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil { // it has been closed: package admission returns no other error
				return
			}
			t.running.Go(func() { t.prove(conn) })
		}
	})
	return t
}

// prove passes a connection to Accept if its handshake succeeds. Package admission limits the time for that.
func (t *tlsListener) prove(conn net.Conn) {
	secured := tls.Server(conn, t.config)
	if secured.Handshake() == nil && conn.(*timed).Conn.(*admission.Conn).Admit() {
		select {
		case t.proven <- secured:
			return
		case <-t.done:
		}
	}
	_ = conn.Close() // what strangers do is no news
}

func (t *tlsListener) Addr() net.Addr { return t.timed.Addr() }
func (t *tlsListener) Close() error   { return t.close() }

// Accept returns the next connection of a member.
func (t *tlsListener) Accept() (net.Conn, error) {
	select {
	case conn := <-t.proven:
		return conn, nil
	case <-t.done:
		return nil, net.ErrClosed
	}
}

// A timedListener gives connections on which no read and no write lasts longer than a time.
type timedListener struct {
	net.Listener
	read, write time.Duration
}

func (l *timedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &timed{c, l}, nil
}

type timed struct {
	net.Conn
	limits *timedListener
}

func (c *timed) Read(b []byte) (int, error) {
	_ = c.SetReadDeadline(time.Now().Add(c.limits.read)) // if it fails so does Read
	return c.Conn.Read(b)
}

func (c *timed) Write(b []byte) (int, error) {
	_ = c.SetWriteDeadline(time.Now().Add(c.limits.write)) // if it fails so does Write
	return c.Conn.Write(b)
}
