package comm

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// An objectList has encoded objects, one after the other, each after its length.
type objectList struct {
	count int
	rest  []byte
}

// openList parses what encodeList has written. It allocates no memory, whatever the bytes are.
func openList(b []byte) (objectList, error) {
	l := objectList{rest: b}
	count, good := l.number()
	l.count = count // at least so many bytes follow
	check := l
	for i := 0; i < count && good; i++ {
		_, good = check.next()
	}
	if !good || len(check.rest) > 0 {
		return objectList{}, errors.New("is no list of objects")
	}
	return l, nil
}

// number reads a number that is not larger than the number of bytes left.
func (l *objectList) number() (n int, good bool) {
	v, used := binary.Uvarint(l.rest)
	if used <= 0 || v > uint64(len(l.rest)-used) {
		return 0, false
	}
	l.rest = l.rest[used:]
	return int(v), true
}

// next returns the next object, encoded.
func (l *objectList) next() (b []byte, good bool) {
	n, good := l.number()
	if !good {
		return nil, false
	}
	b, l.rest = l.rest[:n], l.rest[n:]
	return b, true
}

// decodeList decodes the objects of l, which openList has checked, into what objs point to. It returns how many it has decoded.
func (g *Group) decodeList(l objectList, objs []any) (int, error) {
	for i := range l.count {
		b, _ := l.next()
		if err := g.decode(b, objs[i]); err != nil {
			return i, fmt.Errorf("number %d of %d %w", i+1, l.count, err)
		}
	}
	return l.count, nil
}
