// Package limited bounds what is kept of the output of other programs.
package limited

// A Buffer keeps the first Max bytes that are written to it. Writes of more succeed, so that the writer goes on. It does not embed a
// bytes.Buffer, whose ReadFrom would read without a bound.
type Buffer struct {
	Max  int
	text []byte
}

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.text = append(b.text, p[:max(0, min(len(p), b.Max-len(b.text)))]...)
	return len(p), nil
}

// String returns what is kept.
func (b *Buffer) String() string { return string(b.text) }
