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

// greet returns how who is at the other end of a new connection to host answers, what that is if it is nothing of HTTP/2,
// and the error of TLS if that is the reason. It waits for as long as is polite, and closes the connection.
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
	// A server that wants no more of us may have hung up: what it has said is still there to be read.
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

// isSettings reports whether bytes begin as a server does in HTTP/2: a frame of settings for the whole connection.
func isSettings(b []byte) bool {
	length := binary.BigEndian.Uint32(b) >> 8
	return length%6 == 0 && b[3] == frameSettings && binary.BigEndian.Uint32(b[5:]) == 0
}

// tlsReply is what an error of a handshake says of the other end.
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

// isAlert reports that the other end has said in TLS why it goes on no further.
func isAlert(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error"
}
