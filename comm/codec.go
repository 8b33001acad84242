package comm

import (
	"encoding/binary"
	"fmt"
	"reflect"

	"github.com/gorun/gorun/comm/internal/cborcodec"
)

// DefaultObjectLimit is the limit of [WithObjectLimit] if you do not set it.
const DefaultObjectLimit = 64 << 20

// A Codec turns objects into bytes and back, as the functions of encoding/json do. Several goroutines may use it at once.
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
