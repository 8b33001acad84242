package comm

import (
	"fmt"
	"hash/crc32"
	"sync"

	"github.com/gorun/gorun/comm/internal/reduce"
)

type ownOp struct {
	name        string
	typ         reduce.Type
	block       int
	commutative bool
	kernel      reduce.Kernel
	checksum    uint32 // of what ranks must agree on beyond the code
}

// NewOp is an operation of the caller's own on elements of type T, known to all ranks by name. combine sets every
// element of acc to acc op in; the two are equally long pieces of the vectors. The operation must be associative. One
// that is not commutative is applied strictly in order of rank.
func NewOp[T Element](name string, commutative bool, combine func(acc, in []T)) Op {
	return NewBlockOp(name, 1, commutative, combine)
}

// NewBlockOp is NewOp for values that take block elements each, such as small matrices: acc and in hold whole values.
func NewBlockOp[T Element](name string, block int, commutative bool, combine func(acc, in []T)) Op {
	o := &ownOp{name: name, typ: typeOf[T](), block: block, commutative: commutative}
	if combine != nil {
		o.kernel = reduce.Custom(combine)
	}
	o.checksum = crc32.ChecksumIEEE(fmt.Appendf(nil, "%s %d %v", name, block, commutative))
	ownOps.Store(o.checksum, o.describe())
	return o
}

// ownOps describes every operation of the caller's own by what travels of it, to tell what another rank has called: a rank of
// the same program, as a rule, which has made the operations that this one has.
var ownOps sync.Map

func (o *ownOp) describe() string {
	text := o.name
	if o.block > 1 {
		text += fmt.Sprintf(" in blocks of %d", o.block)
	}
	if !o.commutative {
		text += " in order of rank"
	}
	return text
}

func (o *ownOp) String() string { return o.name }

func (o *ownOp) reduction() reduction { return reduction{code: codeOwn, width: o.block, own: o} }

// detail is what ranks must agree on beyond r's code.
func (r reduction) detail() uint32 {
	if r.own == nil {
		return 0
	}
	return r.own.checksum
}

// check checks that o can combine elements of type t.
func (o *ownOp) check(t reduce.Type) error {
	switch {
	case o.kernel == nil:
		return fmt.Errorf("%v was made without a function", o)
	case o.block < 1:
		return fmt.Errorf("%v was made for blocks of %d: want at least 1", o, o.block)
	case o.typ != t:
		return fmt.Errorf("%v is an operation on %v, not on %v", o, o.typ, t)
	}
	return nil
}
