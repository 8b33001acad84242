package launcher

import "unicode/utf8"

const (
	tailLines = 20
	tailBytes = 1024
)

// tail keeps the beginning of each of the last lines that it is given, without allocating once it is warm.
type tail struct {
	ring [tailLines][]byte
	n    int // lines seen
}

func (t *tail) add(line []byte) {
	slot := &t.ring[t.n%tailLines]
	*slot = append((*slot)[:0], shorten(line)...)
	t.n++
}

func shorten(line []byte) []byte {
	if len(line) <= tailBytes {
		return line
	}
	return line[:wholeRunes(line[:tailBytes])]
}

// last returns copies of the lines kept, oldest first: as they are if raw, otherwise as valid UTF-8.
func (t *tail) last(raw bool) []string {
	var out []string
	for i := max(0, t.n-tailLines); i < t.n; i++ {
		line := t.ring[i%tailLines]
		if !raw && !utf8.Valid(line) {
			line = shorten(appendValid(nil, line))
		}
		out = append(out, string(line))
	}
	return out
}
