// Package auth proves to both ends of a fresh connection that the other one holds the same token,
// without sending it.
//
// One end calls [Dial], the other [Accept]. What they exchange:
//
//	dialer    magic, nonce, hello
//	acceptor  magic, nonce, MAC("acceptor", nonces, hello)
//	dialer    MAC("dialer", nonces, hello)            all zero: your MAC is wrong
//	acceptor  status, reply, MAC("reply", nonces, hello, status, reply)
//
// What it guarantees: neither end acts on anything the other says before the other is proven; a recorded
// conversation proves nothing later, because both nonces are new each time; an end cannot be answered
// with its own messages, because each MAC names its direction; nothing a stranger sends makes either
// end allocate more than [MaxHello] bytes. Hello and reply cannot be changed on the way.
//
// What it expects: the caller sets deadlines on the connection, and closes it after an error. The token is
// a long random secret: a stranger is shown a MAC of it, against which a short one could be guessed. The
// connection is not encrypted afterwards: where the network between the two ends can read or rewrite it, TLS with an
// [Identity] that both make of the secret goes on top.
package auth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"unicode"
)

const (
	// MaxHello is the most bytes that a hello or a reply may have.
	MaxHello = 256
	// MaxReason is the most bytes of a refusal's text that are sent; what is longer is cut.
	MaxReason = 200

	magic     = "gorun1\r\n"
	nonceSize = 32
	macSize   = sha256.Size
)

// Labels keep a MAC made for one purpose from being accepted for another.
const (
	labelAcceptor = "gorun1 acceptor"
	labelDialer   = "gorun1 dialer"
	labelReply    = "gorun1 reply"
)

const (
	statusWelcome = 0
	statusRefused = 1
)

var (
	// ErrWrongToken says that the other end holds another token.
	ErrWrongToken = errors.New("wrong token")
	// ErrNoToken says that this end has no token, without which anybody could prove to hold it.
	ErrNoToken = errors.New("there is no token")
	// ErrNotGorun says that the other end does not speak this protocol at all.
	ErrNotGorun = errors.New("not a gorun connection")

	errLongField = fmt.Errorf("handshake: a field of more than %d bytes", MaxHello)
)

// A RefusedError is what the dialer gets when the acceptor, which holds the same token, does not want it.
type RefusedError struct {
	Reason string // the acceptor's own words, at most MaxReason bytes
}

// Error returns the reason.
func (e *RefusedError) Error() string { return "refused: " + e.Reason }

// Dial runs the dialer's side. hello, at most [MaxHello] bytes, tells the acceptor what this connection is
// for; it travels in clear. The reply is the acceptor's answer, nil after an error. The error is
// [ErrNoToken], [ErrWrongToken], [ErrNotGorun], a [*RefusedError], or wraps that of the connection.
func Dial(conn net.Conn, token, hello []byte) (reply []byte, err error) {
	if len(token) == 0 {
		return nil, ErrNoToken
	}
	if len(hello) > MaxHello {
		return nil, fmt.Errorf("handshake: hello of %d bytes: the most is %d", len(hello), MaxHello)
	}
	t := transcript{token: token, hello: hello}
	rand.Read(t.dialer[:])
	first := append([]byte(magic), t.dialer[:]...)
	if err := write(conn, appendField(first, hello)); err != nil {
		return nil, err
	}
	if err := readMagic(conn); err != nil {
		return nil, err
	}
	var answer [nonceSize + macSize]byte
	if err := read(conn, answer[:]); err != nil {
		return nil, err
	}
	copy(t.acceptor[:], answer[:nonceSize])
	if !hmac.Equal(answer[nonceSize:], t.mac(labelAcceptor)) {
		// The acceptor learns why we leave; that we do is said whether or not it arrives.
		_ = write(conn, make([]byte, macSize))
		return nil, ErrWrongToken
	}
	if err := write(conn, t.mac(labelDialer)); err != nil {
		return nil, err
	}
	return t.readVerdict(conn)
}

// Accept runs the acceptor's side. Once the dialer is proven, decide is called with its hello: what it returns
// goes to the dialer, either as the reply, at most [MaxHello] bytes, or as the text of a [RefusedError]. Accept
// returns the hello of a dialer that was proven and wanted. The error is [ErrNoToken], [ErrWrongToken], [ErrNotGorun],
// decide's own, or wraps that of the connection.
func Accept(conn net.Conn, token []byte, decide func(hello []byte) (reply []byte, err error)) (hello []byte, err error) {
	if len(token) == 0 {
		return nil, ErrNoToken
	}
	t := transcript{token: token}
	if err := readMagic(conn); err != nil {
		return nil, err
	}
	if err := read(conn, t.dialer[:]); err != nil {
		return nil, err
	}
	if t.hello, err = readField(conn); err != nil {
		return nil, err
	}
	rand.Read(t.acceptor[:])
	answer := append([]byte(magic), t.acceptor[:]...)
	if err := write(conn, append(answer, t.mac(labelAcceptor)...)); err != nil {
		return nil, err
	}
	var proof [macSize]byte
	if err := read(conn, proof[:]); err != nil {
		return nil, err
	}
	if !hmac.Equal(proof[:], t.mac(labelDialer)) {
		return nil, ErrWrongToken
	}
	reply, refusal := decide(t.hello)
	if refusal == nil && len(reply) > MaxHello {
		refusal = fmt.Errorf("reply of %d bytes: the most is %d", len(reply), MaxHello)
	}
	if err := t.writeVerdict(conn, reply, refusal); err != nil {
		return nil, errors.Join(refusal, err)
	}
	if refusal != nil {
		return nil, refusal
	}
	return t.hello, nil
}

// A transcript is what both ends have said; every MAC covers all of it.
type transcript struct {
	token            []byte
	dialer, acceptor [nonceSize]byte // nonces
	hello            []byte
}

// mac returns the proof for one purpose. Every part but the last is of fixed length or carries its own, so that
// no two transcripts give the same bytes.
func (t *transcript) mac(label string, verdict ...byte) []byte {
	h := hmac.New(sha256.New, t.token)
	h.Write([]byte(label + "\x00"))
	h.Write(t.dialer[:])
	h.Write(t.acceptor[:])
	h.Write(appendField(nil, t.hello))
	h.Write(verdict)
	return h.Sum(nil)
}

func (t *transcript) writeVerdict(conn net.Conn, reply []byte, refusal error) error {
	verdict := []byte{statusWelcome}
	if refusal != nil {
		verdict, reply = []byte{statusRefused}, []byte(cut(refusal.Error()))
	}
	verdict = appendField(verdict, reply)
	return write(conn, append(verdict, t.mac(labelReply, verdict...)...))
}

func (t *transcript) readVerdict(conn net.Conn) ([]byte, error) {
	var status [1]byte
	if err := read(conn, status[:]); err != nil {
		return nil, err
	}
	reply, err := readField(conn)
	if err != nil {
		return nil, err
	}
	var proof [macSize]byte
	if err := read(conn, proof[:]); err != nil {
		return nil, err
	}
	if !hmac.Equal(proof[:], t.mac(labelReply, appendField(status[:], reply)...)) {
		return nil, ErrWrongToken
	}
	if status[0] != statusWelcome {
		return nil, &RefusedError{Reason: Printable(string(reply))}
	}
	return reply, nil
}

func readMagic(conn net.Conn) error {
	var got [len(magic)]byte
	if err := read(conn, got[:]); err != nil {
		return err
	}
	if string(got[:]) != magic {
		return ErrNotGorun
	}
	return nil
}

func readField(conn net.Conn) ([]byte, error) {
	var size [2]byte
	if err := read(conn, size[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint16(size[:]))
	if n > MaxHello {
		return nil, errLongField
	}
	field := make([]byte, n)
	return field, read(conn, field)
}

func appendField(b, field []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(field)))
	return append(b, field...)
}

func read(conn net.Conn, b []byte) error {
	if _, err := io.ReadFull(conn, b); err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	return nil
}

func write(conn net.Conn, b []byte) error {
	if _, err := conn.Write(b); err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	return nil
}

// cut keeps whole characters only.
func cut(reason string) string {
	if len(reason) > MaxReason {
		reason = reason[:MaxReason]
	}
	return strings.ToValidUTF8(reason, "")
}

// Printable makes text of another process safe to print: it is one line then, without control characters.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		default:
			return unicode.ReplacementChar
		}
	}, text)
}
