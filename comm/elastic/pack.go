package elastic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"

	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/comm/internal/cborcodec"
)

// codec encodes values: equal ones as equal bytes.
var codec comm.Codec = cborcodec.New()

// maxValue is how many bytes a value may take. A rank refuses to receive more.
const maxValue = comm.DefaultObjectLimit

// pack appends the contents of the items that travel together: of each value its length and its encoding, and of each short slice its bytes.
func pack(b []byte, items []Item) ([]byte, error) {
	for _, i := range items {
		switch {
		case i.isValue():
			encoded, err := codec.Marshal(i.value.Interface())
			if err == nil && len(encoded) > maxValue {
				err = fmt.Errorf("it takes %d bytes: the limit is %d; use a Slice", len(encoded), maxValue)
			}
			if err != nil {
				return nil, &comm.ArgumentError{Op: "elastic.Commit", Err: fmt.Errorf("%v cannot be encoded: %w", i, err)}
			}
			b = append(binary.AppendUvarint(b, uint64(len(encoded))), encoded...)
		case !i.isLarge():
			b = append(b, i.bytes...)
		}
	}
	return b, nil
}

// maxPacked is the number of bytes that pack appends at most.
func maxPacked(items []Item) int {
	n := 0
	for _, i := range items {
		switch {
		case i.isValue():
			n += binary.MaxVarintLen32 + maxValue
		case !i.isLarge():
			n += len(i.bytes)
		}
	}
	return n
}

// contents returns what b, which pack has made of such items, has of each of them: nil for a large slice.
func contents(b []byte, items []Item) ([][]byte, error) {
	list := make([][]byte, len(items))
	for n, i := range items {
		length := len(i.bytes)
		switch {
		case i.isValue():
			l, used := binary.Uvarint(b)
			if used <= 0 || l > uint64(len(b)-used) {
				return nil, errors.New("a packed state is too short")
			}
			b, length = b[used:], int(l)
		case i.isLarge():
			continue
		}
		if length > len(b) {
			return nil, errors.New("a packed state is too short")
		}
		list[n], b = b[:length:length], b[length:]
	}
	if len(b) > 0 {
		return nil, fmt.Errorf("a packed state has %d bytes too many", len(b))
	}
	return list, nil
}

// unpack decodes b, which pack has made of such items. What it returns sets the variables.
func unpack(b []byte, items []Item) (set func(), err error) {
	list, err := contents(b, items)
	if err != nil {
		return nil, err
	}
	decoded := make([]reflect.Value, len(items))
	for n, i := range items {
		if !i.isValue() {
			continue
		}
		decoded[n] = reflect.New(i.value.Type().Elem()) // a codec may merge into a value that is there
		if err := codec.Unmarshal(list[n], decoded[n].Interface()); err != nil {
			return nil, &comm.ArgumentError{Op: "elastic.Restore", Err: fmt.Errorf("%v cannot be decoded: %w", i, err)}
		}
	}
	return func() {
		for n, i := range items {
			if i.isValue() {
				i.value.Elem().Set(decoded[n].Elem())
			} else if !i.isLarge() {
				copy(i.bytes, list[n])
			}
		}
	}, nil
}
