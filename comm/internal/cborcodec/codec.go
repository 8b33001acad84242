// Package cborcodec encodes objects as CBOR, and refuses those that would lose something on the way.
//
// CBOR encodes what is exported of a value. The rest, such as fields that are not exported, would be missing on the other side without an
// error. types.go finds out what all values of a type would lose, and fields.go does so for a struct. If the type does not tell,
// values.go examines the value.
package cborcodec

import (
	"errors"

	"github.com/fxamacker/cbor/v2"
)

// A Codec encodes and decodes objects. Several goroutines may use it at once.
type Codec struct {
	cbor.EncMode
	dec cbor.DecMode
}

// New returns a Codec. It decodes into an any as a bool, int64, float64, string, []byte, time.Time, []any, map[any]any, or nil. It checks
// the bytes of a peer before it allocates memory for them, so they cannot make it allocate much more than they are.
func New() Codec {
	enc, err := cbor.EncOptions{
		Time: cbor.TimeRFC3339Nano, TimeTag: cbor.EncTagRequired, NaNConvert: cbor.NaNConvertNone, InfConvert: cbor.InfConvertNone,
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
	if err := c.checkWhole(v); err != nil {
		return nil, err
	}
	return c.EncMode.Marshal(v)
}

// Unmarshal decodes data into what v points to.
func (c Codec) Unmarshal(data []byte, v any) error { return c.dec.Unmarshal(data, v) }
