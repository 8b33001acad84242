package frame

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// magic begins the line of a Hello. A shell that prints its commands does not print this: it is not in the command.
const magic = "\x01gorun-agent "

const (
	maxHello = 4 << 10  // bytes of a Hello
	maxNoise = 64 << 10 // bytes that a login shell may print before it
	noiseEnd = 1 << 10  // of these, the last ones, which a NoiseError has
)

// AppendHello appends a Hello.
func AppendHello(b []byte, h Hello) []byte {
	b = append(b, magic...)
	b = append(b, Encode(h)...)
	return append(b, '\n')
}

// A NoiseError says that no Hello came.
type NoiseError struct {
	Noise []byte // the end of what came instead
	Err   error
}

func (e *NoiseError) Error() string { return e.Err.Error() }

// Unwrap returns what ended the wait.
func (e *NoiseError) Unwrap() error { return e.Err }

// ReadHello skips what comes before a Hello, and reads it: in one piece, for which the buffer of r must have room. If none comes, the error is a *NoiseError.
func ReadHello(r *bufio.Reader) (h Hello, err error) {
	var noise []byte
	fail := func(err error) (Hello, error) {
		return Hello{}, &NoiseError{bytes.Clone(noise[max(0, len(noise)-noiseEnd):]), err}
	}
	for !bytes.HasSuffix(noise, []byte(magic)) {
		if len(noise) > maxNoise {
			return fail(fmt.Errorf("nothing from gorun after %d bytes of other output", maxNoise))
		}
		c, err := r.ReadByte()
		if err != nil {
			return fail(err)
		}
		noise = append(noise, c)
	}
	noise = noise[:len(noise)-len(magic)]
	line, err := r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull) || len(line) > maxHello:
		return fail(fmt.Errorf("its first line has more than %d bytes", maxHello))
	case err == io.EOF:
		return fail(io.ErrUnexpectedEOF)
	case err != nil:
		return fail(err)
	}
	if err := json.Unmarshal(line, &h); err != nil {
		return fail(fmt.Errorf("its first line: %w", err))
	}
	if h.Port < 0 || h.Port > 65534 {
		return fail(fmt.Errorf("its first line: port %d", h.Port))
	}
	return h, nil
}
