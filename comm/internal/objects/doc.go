// Package objects carries values of Go from rank to rank: it encodes and decodes them by the codec of their group, and moves
// them by the collectives and messages of package core. Its errors are those of package core.
package objects

import (
	"cmp"

	"github.com/gorun/gorun/comm/internal/cborcodec"
	"github.com/gorun/gorun/comm/internal/core"
)

// A Codec turns objects into bytes and back.
type Codec interface {
	Marshal(v any) ([]byte, error)
	Unmarshal(data []byte, v any) error
}

// CBOR is the codec of groups that have no other.
var CBOR Codec = cborcodec.New()

// DefaultLimit is the limit of groups that have no other.
const DefaultLimit = 64 << 20

// A Group is a group, and how objects travel in it.
type Group struct {
	*core.Group
	Format
}

// A Format is how objects travel.
type Format struct {
	Codec Codec // nil: CBOR
	Limit int   // of what one rank passes to one call, encoded, in bytes; 0: DefaultLimit
}

func (f *Format) codec() Codec { return cmp.Or(f.Codec, CBOR) }

func (f *Format) limit() int { return cmp.Or(f.Limit, DefaultLimit) }
