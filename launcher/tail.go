package launcher

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
	*slot = append((*slot)[:0], line[:min(len(line), tailBytes)]...)
	t.n++
}

// last returns copies of the lines kept, oldest first.
func (t *tail) last() []string {
	var out []string
	for i := max(0, t.n-tailLines); i < t.n; i++ {
		out = append(out, string(t.ring[i%tailLines]))
	}
	return out
}
