package comm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"

	"github.com/gorun/gorun/comm/internal/cborcodec"
)

// DefaultObjectLimit is the limit of [WithObjectLimit] if you do not set it.
const DefaultObjectLimit = 64 << 20

// A Codec turns objects into bytes and back, as the functions of encoding/json do. Several goroutines may use it at
// once.
type Codec interface {
	Marshal(v any) ([]byte, error)
	Unmarshal(data []byte, v any) error
}

// defaultCodec is CBOR.
var defaultCodec Codec = cborcodec.New()

// wantPointers checks that objs can be decoded into.
func wantPointers(objs []any) error {
	for i, obj := range objs {
		if v := reflect.ValueOf(obj); v.Kind() != reflect.Pointer || v.IsNil() {
			return fmt.Errorf("objs[%d] is %T: want a pointer that is not nil", i, obj)
		}
	}
	return nil
}

// encode returns v encoded, unless it is longer than g's limit.
func (g *Group) encode(v any) ([]byte, error) {
	b, err := g.codec.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("cannot be encoded: %w", err)
	}
	return b, g.fits(len(b))
}

func (g *Group) fits(n int) error {
	if n > g.objectLimit {
		return fmt.Errorf("takes %d bytes: the limit is %d (see WithObjectLimit)", n, g.objectLimit)
	}
	return nil
}

// decode decodes b into what p points to. If it fails, it does not change that.
func (g *Group) decode(b []byte, p any) error {
	v := reflect.ValueOf(p).Elem()
	fresh := reflect.New(v.Type()) // a codec may merge into an existing value
	if err := g.codec.Unmarshal(b, fresh.Interface()); err != nil {
		return fmt.Errorf("cannot be decoded: %w", err)
	}
	v.Set(fresh.Elem())
	return nil
}

// encodeList returns the number of objs, and then each of them encoded, after its length.
func (g *Group) encodeList(objs []any) ([]byte, error) {
	list := binary.AppendUvarint(nil, uint64(len(objs)))
	for i, obj := range objs {
		b, err := g.encode(obj)
		if err != nil {
			return nil, fmt.Errorf("number %d of %d %w", i+1, len(objs), err)
		}
		list = append(binary.AppendUvarint(list, uint64(len(b))), b...)
	}
	return list, g.fits(len(list))
}

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

// decodeList decodes the objects of l, which openList has checked, into what objs point to. It returns how many it has
// decoded.
func (g *Group) decodeList(l objectList, objs []any) (int, error) {
	for i := range l.count {
		b, _ := l.next()
		if err := g.decode(b, objs[i]); err != nil {
			return i, fmt.Errorf("number %d of %d %w", i+1, l.count, err)
		}
	}
	return l.count, nil
}
