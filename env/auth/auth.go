// Package auth proves to both ends of a new connection that the other end holds the same token, without
// sending it.
//
// One end calls [Dial], the other [Accept]. What they exchange:
//
//	dialer    magic, nonce, hello
//	acceptor  magic, nonce, MAC("acceptor", nonces, hello)
//	dialer    MAC("dialer", nonces, hello)            all zero: your MAC is wrong
//	acceptor  status, reply, MAC("reply", nonces, hello, status, reply)
//
// It guarantees that neither end acts on anything that the other sends before the other has proven itself;
// that a recorded conversation proves nothing later, because both nonces are new each time; that an end
// cannot be answered with its own messages, because each MAC names its direction; and that nothing that a
// stranger sends makes either end allocate more than [MaxHello] bytes. Hello and reply cannot be changed on
// the way.
//
// It expects the caller to set deadlines on the connection, and to close it after an error. The token must be a long
// random secret: a stranger sees a MAC of it, which allows guessing a short one. The connection is not encrypted
// afterwards: if somebody can read or change it on the network between the two ends, use TLS on top, with an
// [Identity] that both ends derive from the secret.
//
// The package also reads tokens from files that other users cannot read: [ReadTokenFile] reads one that the user wrote. [LoopbackToken]
// reads or creates the file with the user's own token, which the user's programs on this machine use to recognize each other if
// they were given no token.
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
	// MaxReason is the most bytes of a refusal's text that are sent. Longer texts are cut.
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
	// ErrNoToken says that this end has no token. Anybody can prove that they hold an empty token.
	ErrNoToken = errors.New("there is no token")
	// ErrNotGorun says that the other end does not speak this protocol at all.
	ErrNotGorun = errors.New("not a gorun connection")

	errLongField = fmt.Errorf("handshake: a field of more than %d bytes", MaxHello)
)

// A RefusedError is what the dialer gets if the acceptor holds the same token but refuses the connection.
type RefusedError struct {
	Reason string // the acceptor's own words, at most MaxReason bytes
}

// Error returns the reason.
func (e *RefusedError) Error() string { return "refused: " + e.Reason }

// Dial runs the dialer's side. hello, at most [MaxHello] bytes, tells the acceptor what this connection is
// for; it is sent in the clear. The reply is the acceptor's answer, nil after an error. The error is
// [ErrNoToken], [ErrWrongToken], [ErrNotGorun] or a [*RefusedError], or it wraps the connection's error.
func Dial(conn net.Conn, token, hello []byte) (reply []byte, err error) {
	if len(token) == 0 {
		return nil, ErrNoToken
	}
	if len(hello) > MaxHello {
		return nil, fmt.Errorf("handshake: hello of %d bytes: the limit is %d", len(hello), MaxHello)
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

// Accept runs the acceptor's side. Once the dialer has proven itself, Accept calls decide with its hello. It sends the
// result of decide to the dialer, either as the reply, at most [MaxHello] bytes, or as the text of a [RefusedError]. If
// the result is [net.ErrClosed], the acceptor is closing, and Accept sends nothing: the caller closes conn, and the
// dialer may try again. Accept returns the hello of a dialer that was accepted. The error is [ErrNoToken],
// [ErrWrongToken], [ErrNotGorun] or decide's own, or it wraps the connection's error.
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
	if err := t.readProof(conn, labelDialer); err != nil {
		return nil, err
	}
	reply, refusal := decide(t.hello)
	if refusal == nil && len(reply) > MaxHello {
		refusal = fmt.Errorf("reply of %d bytes: the limit is %d", len(reply), MaxHello)
	}
	if errors.Is(refusal, net.ErrClosed) {
		return nil, refusal
	}
	if err := t.writeVerdict(conn, reply, refusal); err != nil {
		return nil, errors.Join(refusal, err)
	}
	if refusal != nil {
		return nil, refusal
	}
	return t.hello, nil
}

// A transcript is what both ends have sent. Every MAC covers all of it.
type transcript struct {
	token            []byte
	dialer, acceptor [nonceSize]byte // nonces
	hello            []byte
}

// mac returns the proof for one purpose. Every part but the last has a fixed length or contains its length, so
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

func (t *transcript) readProof(conn net.Conn, label string, verdict ...byte) error {
	var proof [macSize]byte
	if err := read(conn, proof[:]); err != nil {
		return err
	}
	if !hmac.Equal(proof[:], t.mac(label, verdict...)) {
		return ErrWrongToken
	}
	return nil
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
	if err := t.readProof(conn, labelReply, appendField(status[:], reply)...); err != nil {
		return nil, err
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

// cut shortens a reason to whole characters.
func cut(reason string) string {
	if len(reason) > MaxReason {
		reason = reason[:MaxReason]
	}
	return strings.ToValidUTF8(reason, "")
}

// Printable makes text from another process safe to print: it returns one line without control characters.
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
