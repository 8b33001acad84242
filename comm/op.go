package comm

import (
	"fmt"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/reduce"
)

// An Op combines the elements of all ranks into one: [Sum], [Prod], [Min], [Max], [BitAnd], [BitOr], [BitXor],
// [LogicalAnd], [LogicalOr], [LogicalXor], [MinLoc], [MaxLoc], [Avg], [PreMulSum], or one of your own, made by
// [NewOp] or [NewBlockOp].
type Op interface {
	fmt.Stringer
	reduction() *call.Reduction
}

// reductionOf returns what op does. It is the zero Reduction if op is nil.
func reductionOf(op Op) *call.Reduction {
	switch o := op.(type) {
	case nil:
		return &call.Reduction{}
	case basicOp: // without a call through the interface
		return o.reduction()
	}
	return op.reduction()
}

type basicOp uint8

// The operations. BitAnd to LogicalXor are for integers; Min, Max, MinLoc and MaxLoc for everything but complex
// numbers.
const (
	Sum        = basicOp(reduce.Sum)
	Prod       = basicOp(reduce.Prod)
	Min        = basicOp(reduce.Min)
	Max        = basicOp(reduce.Max)
	BitAnd     = basicOp(reduce.And)
	BitOr      = basicOp(reduce.Or)
	BitXor     = basicOp(reduce.Xor)
	LogicalAnd = basicOp(reduce.LogicalAnd) // an element that is not 0 is true; the result is 0 or 1
	LogicalOr  = basicOp(reduce.LogicalOr)
	LogicalXor = basicOp(reduce.LogicalXor) // true where an odd number of ranks has true
	// MinLoc and MaxLoc combine pairs of elements, so lengths are even: a value and its location, such as the rank. The least or the
	// greatest value wins. Of equal values the one with the lowest location wins. NaN wins over all other values.
	MinLoc = basicOp(reduce.MinLoc)
	MaxLoc = basicOp(reduce.MaxLoc)
	Avg    = basicOp(call.CodeAvg) // the sum divided by the number of ranks in the group
)

func (o basicOp) String() string { return o.reduction().String() }

func (o basicOp) reduction() *call.Reduction { return &call.Basic[o] }

// A madeOp is an operation of PreMulSum, NewOp or NewBlockOp.
type madeOp struct{ *call.Reduction }

func (o madeOp) reduction() *call.Reduction { return o.Reduction }

// PreMulSum multiplies this rank's elements by factor and sums the products. Ranks may use different factors. For
// integer elements factor must be a whole number.
func PreMulSum(factor float64) Op { return madeOp{call.PreMulSum(factor)} }

// NewOp returns an operation of your own on elements of type T, which has the same name on all ranks. combine sets
// every element of acc to acc op in. It must not change in. The two are equally long parts of the vectors. The
// operation must be associative. If it is not commutative, it is applied strictly in order of rank.
func NewOp[T Element](name string, commutative bool, combine func(acc, in []T)) Op {
	return NewBlockOp(name, 1, commutative, combine)
}

// NewBlockOp is NewOp for values of block elements each, such as small matrices. acc and in hold whole values.
func NewBlockOp[T Element](name string, block int, commutative bool, combine func(acc, in []T)) Op {
	var kernel reduce.Kernel
	if combine != nil {
		kernel = reduce.Custom(combine)
	}
	return madeOp{call.NewOwn(name, typeOf[T](), block, commutative, kernel)}
}
