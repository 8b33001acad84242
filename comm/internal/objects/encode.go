package objects

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
)

// wantPointers checks that objs can be decoded into.
func wantPointers(objs []any) error {
	for i, obj := range objs {
		if v := reflect.ValueOf(obj); v.Kind() != reflect.Pointer || v.IsNil() {
			return fmt.Errorf("objs[%d] is %T: want a pointer that is not nil", i, obj)
		}
	}
	return nil
}

// encode returns v encoded, unless it is longer than the limit.
func (f *Format) encode(v any) ([]byte, error) {
	b, err := f.codec().Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("cannot be encoded: %w", err)
	}
	return b, f.fits(len(b))
}

func (f *Format) fits(n int) error {
	if n > f.limit() {
		return fmt.Errorf("takes %d bytes: the limit is %d (see WithObjectLimit)", n, f.limit())
	}
	return nil
}

// decode decodes b into what p points to. If it fails, it does not change that.
func (f *Format) decode(b []byte, p any) error {
	v := reflect.ValueOf(p).Elem()
	fresh := reflect.New(v.Type()) // a codec may merge into an existing value
	if err := f.codec().Unmarshal(b, fresh.Interface()); err != nil {
		return fmt.Errorf("cannot be decoded: %w", err)
	}
	v.Set(fresh.Elem())
	return nil
}

// encodeAll encodes the objects for all ranks. If one of them cannot be encoded, it returns none.
func encodeAll[T any](f *Format, in []T) (payloads [][]byte, err error) {
	payloads = make([][]byte, len(in))
	for i, obj := range in {
		if payloads[i], err = f.encode(obj); err != nil {
			return nil, fmt.Errorf("number %d of %d %w", i+1, len(in), err)
		}
	}
	return payloads, nil
}

// encodeList returns the number of objs, and then each of them encoded, after its length.
func (f *Format) encodeList(objs []any) ([]byte, error) {
	list := binary.AppendUvarint(nil, uint64(len(objs)))
	for i, obj := range objs {
		b, err := f.encode(obj)
		if err != nil {
			return nil, fmt.Errorf("number %d of %d %w", i+1, len(objs), err)
		}
		list = append(binary.AppendUvarint(list, uint64(len(b))), b...)
	}
	return list, f.fits(len(list))
}

// A list has encoded objects, one after the other, each after its length.
type list struct {
	count int
	rest  []byte
}

// openList parses what encodeList has written. It allocates no memory, whatever the bytes are.
func openList(b []byte) (list, error) {
	l := list{rest: b}
	count, good := l.number()
	l.count = count // at least so many bytes follow
	check := l
	for i := 0; i < count && good; i++ {
		_, good = check.next()
	}
	if !good || len(check.rest) > 0 {
		return list{}, errors.New("is no list of objects")
	}
	return l, nil
}

// number reads a number that is not larger than the number of bytes left.
func (l *list) number() (n int, good bool) {
	v, used := binary.Uvarint(l.rest)
	if used <= 0 || v > uint64(len(l.rest)-used) {
		return 0, false
	}
	l.rest = l.rest[used:]
	return int(v), true
}

// next returns the next object, encoded.
func (l *list) next() (b []byte, good bool) {
	n, good := l.number()
	if !good {
		return nil, false
	}
	b, l.rest = l.rest[:n], l.rest[n:]
	return b, true
}

// decodeList decodes the objects of l, which openList has checked, into what objs point to. It returns how many it has
// decoded.
func (f *Format) decodeList(l list, objs []any) (int, error) {
	for i := range l.count {
		b, _ := l.next()
		if err := f.decode(b, objs[i]); err != nil {
			return i, fmt.Errorf("number %d of %d %w", i+1, l.count, err)
		}
	}
	return l.count, nil
}
