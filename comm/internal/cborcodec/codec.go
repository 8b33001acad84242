// Package cborcodec encodes objects as CBOR, and refuses those that would lose something on their way.
//
// CBOR takes what a value shows of itself. What it does not show, such as fields that are not exported, would be missing on the
// other side without a word. types.go knows what that is for all values of a type, fields.go for a struct; values.go looks at a value
// where its type does not say.
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

// New returns a Codec. What arrives as an any is a bool, int64, float64, string, []byte, time.Time, []any, map[any]any, or nil. Bytes of
// a peer cannot make it take memory out of proportion: it checks them before it takes any.
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

// Marshal refuses what would lose something on its way.
func (c Codec) Marshal(v any) ([]byte, error) {
	if err := c.checkWhole(v); err != nil {
		return nil, err
	}
	return c.EncMode.Marshal(v)
}

// Unmarshal decodes data into what v points to.
func (c Codec) Unmarshal(data []byte, v any) error { return c.dec.Unmarshal(data, v) }
