// Package cborcodec encodes objects as CBOR, and refuses those that would lose something on the way.
//
// CBOR encodes what is exported of a value. The rest, such as fields that are not exported, would be missing on the
// other side without an error. types.go finds out what all values of a type would lose. If the type does not tell, the
// codec examines the value.
package cborcodec

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/fxamacker/cbor/v2"
)

// A Codec encodes and decodes objects. Several goroutines may use it at once.
type Codec struct {
	cbor.EncMode
	dec cbor.DecMode
}

// New returns a Codec. It decodes into an any as a bool, int64, float64, string, []byte, time.Time, []any, map[any]any,
// or nil. It checks the bytes of a peer before it allocates memory for them, so they cannot make it allocate much more
// than they are.
func New() Codec {
	enc, err := cbor.EncOptions{
		Sort: cbor.SortBytewiseLexical, Time: cbor.TimeRFC3339Nano, TimeTag: cbor.EncTagRequired, NaNConvert: cbor.NaNConvertNone, InfConvert: cbor.InfConvertNone,
	}.EncMode()
	dec, decErr := cbor.DecOptions{
		MaxNestedLevels: maxNesting, MaxArrayElements: 1 << 24, MaxMapPairs: 1 << 22,
		IndefLength: cbor.IndefLengthForbidden,
		IntDec:      cbor.IntDecConvertSignedOrBigInt,
		UTF8:        cbor.UTF8DecodeInvalid, // any Go string
	}.DecMode()
	if err := errors.Join(err, decErr); err != nil {
		panic(err) // the options are constants
	}
	return Codec{enc, dec}
}

// Marshal refuses values that would lose something on the way.
func (c Codec) Marshal(v any) ([]byte, error) {
	if v != nil {
		if err := c.checkValue(reflect.ValueOf(v), 0, 0); err != nil {
			return nil, err
		}
	}
	return c.EncMode.Marshal(v)
}

// Unmarshal decodes data into what v points to.
func (c Codec) Unmarshal(data []byte, v any) error { return c.dec.Unmarshal(data, v) }

// maxNesting is how deep arrays, maps and structs may be nested.
const maxNesting = 64

// checkValue returns what of v would be lost on the way, if anything. v is nested so deep, and is reached through so
// many pointers and interfaces in a row.
func (c Codec) checkValue(v reflect.Value, nested, hops int) error {
	t := objectTypeOf(v.Type())
	switch {
	case t.lost != nil || !t.open:
		return t.lost
	case nested > maxNesting || hops > maxNesting:
		return fmt.Errorf("%v is nested more than %d deep, or holds itself", v.Type(), maxNesting)
	}
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return c.checkValue(v.Elem(), nested, hops+1)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if err := c.checkValue(v.Index(i), nested+1, 0); err != nil {
				return err
			}
		}
	case reflect.Map:
		return c.checkMap(v, nested)
	case reflect.Struct:
		for _, path := range t.fields {
			f, err := v.FieldByIndexErr(path)
			if err != nil { // of an embedded struct that is not there
				continue
			}
			if err := c.checkValue(f, nested+1, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkMap examines the keys and values of v. It refuses two keys that are encoded alike.
func (c Codec) checkMap(v reflect.Value, nested int) error {
	var seen map[string]any
	if mayCoincide(v.Type().Key()) {
		seen = make(map[string]any, v.Len())
	}
	for key, elem := range v.Seq2() {
		for _, part := range []reflect.Value{key, elem} {
			if err := c.checkValue(part, nested+1, 0); err != nil {
				return err
			}
		}
		if seen == nil {
			continue
		}
		encoded, err := c.EncMode.Marshal(key.Interface())
		if err != nil {
			return err
		}
		if other, ok := seen[string(encoded)]; ok {
			return fmt.Errorf("keys %v (%T) and %v (%T) of %v are encoded alike, and one of them would be lost", other, other, key, key.Interface(), v.Type())
		}
		seen[string(encoded)] = key.Interface()
	}
	return nil
}
