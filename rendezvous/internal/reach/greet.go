package reach

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"
)

// A reply is how somebody answers a greeting in HTTP/2.
type reply int

const (
	saysHTTP2   reply = iota + 1 // as etcd does
	saysOther                    // bytes that are nothing of HTTP/2
	saysNothing                  // for as long as one waits
	hangsUp                      // before anything else
	distrusted                   // has a certificate that is not trusted
	distrusts                    // wants another certificate, or some
	noTLS                        // does not answer a TLS handshake as TLS does
)

// A client's first words in HTTP/2: the preface, and a frame of no settings.
const greeting = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + "\x00\x00\x00\x04\x00\x00\x00\x00\x00"

const (
	politely      = 800 * time.Millisecond // for which an answer is awaited
	maxSaid       = 32                     // bytes of an answer that are looked at
	frameHeader   = 9                      // bytes
	frameSettings = 4                      // the type of the frame with which a server answers
)

// greet greets the other end of a new connection to host, and returns its reply: with the first bytes of what it said
// if that is saysOther, and with the error of TLS if there is one. It waits at most for the time politely, and closes
// the connection.
func greet(ctx context.Context, conn net.Conn, host string, credentials *tls.Config) (reply, []byte, error) {
	raw := conn
	defer func() { _ = raw.Close() }() // all that matters has been read
	ctx, cancel := context.WithTimeout(ctx, politely)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Unix(1, 0)) })()
	if credentials != nil {
		credentials = credentials.Clone()
		credentials.NextProtos = []string{"h2"}
		if credentials.ServerName == "" {
			credentials.ServerName = host
		}
		secured := tls.Client(conn, credentials)
		if err := secured.HandshakeContext(ctx); err != nil {
			return tlsReply(ctx, err), nil, err
		}
		conn = secured
	}
	// If the server has hung up, what it said before can still be read.
	_, writeErr := io.WriteString(conn, greeting)
	said := make([]byte, maxSaid)
	n, err := io.ReadAtLeast(conn, said, frameHeader)
	said = said[:n]
	switch {
	case n >= frameHeader && isSettings(said):
		return saysHTTP2, nil, nil
	case n > 0:
		return saysOther, said, nil
	case ctx.Err() != nil:
		return saysNothing, nil, nil
	case credentials != nil && isAlert(err):
		return distrusts, nil, err
	case credentials != nil && isAlert(writeErr):
		return distrusts, nil, writeErr
	}
	return hangsUp, nil, nil
}

// isSettings reports whether bytes begin with the first frame of a server of HTTP/2: settings for the whole connection.
func isSettings(b []byte) bool {
	length := binary.BigEndian.Uint32(b) >> 8
	return length%6 == 0 && b[3] == frameSettings && binary.BigEndian.Uint32(b[5:]) == 0
}

// tlsReply returns the reply that the error of a handshake stands for.
func tlsReply(ctx context.Context, err error) reply {
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.As(err, &untrusted):
		return distrusted
	case isAlert(err):
		return distrusts
	case ctx.Err() != nil:
		return saysNothing
	}
	return noTLS
}

// isAlert reports whether the other end has ended the handshake with an alert of TLS, which says why.
func isAlert(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error"
}
