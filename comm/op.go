package comm

import (
	"fmt"

	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/reduce"
)

// An Op combines the elements of all ranks into one: [Sum], [Prod], [Min], [Max], [BitAnd], [BitOr], [BitXor],
// [LogicalAnd], [LogicalOr], [LogicalXor], [MinLoc], [MaxLoc], [Avg], [PreMulSum], or one of the caller's own made by
// [NewOp].
type Op interface {
	fmt.Stringer
	reduction() core.Reduction
}

// reductionOf is what op does; nothing if none was given.
func reductionOf(op Op) core.Reduction {
	if o, ok := op.(basicOp); ok { // the usual ones, at once
		return o.reduction()
	}
	if op == nil {
		return core.Reduction{}
	}
	return op.reduction()
}

type basicOp uint8

// The operations. BitAnd to LogicalXor are for integers; Min, Max, MinLoc and MaxLoc for everything but complex numbers.
const (
	Sum        = basicOp(core.CodeSum)
	Prod       = basicOp(core.CodeProd)
	Min        = basicOp(core.CodeMin)
	Max        = basicOp(core.CodeMax)
	BitAnd     = basicOp(core.CodeBitAnd)
	BitOr      = basicOp(core.CodeBitOr)
	BitXor     = basicOp(core.CodeBitXor)
	LogicalAnd = basicOp(core.CodeLogicalAnd) // an element that is not 0 is true; the result is 0 or 1
	LogicalOr  = basicOp(core.CodeLogicalOr)
	LogicalXor = basicOp(core.CodeLogicalXor) // whether an odd number of ranks has true
	// MinLoc and MaxLoc combine pairs of elements, a value and the place where it was found, such as the rank: the least or
	// greatest value wins, of equal ones that with the lowest place, and NaN over all.
	MinLoc = basicOp(core.CodeMinLoc)
	MaxLoc = basicOp(core.CodeMaxLoc)
	Avg    = basicOp(core.CodeAvg) // the sum divided by the number of ranks in the group
)

func (o basicOp) String() string { return o.reduction().String() }

func (o basicOp) reduction() core.Reduction { return core.Basic[o] }

// madeOp is an operation that a call has made.
type madeOp struct{ core.Reduction }

func (o madeOp) reduction() core.Reduction { return o.Reduction }

// PreMulSum multiplies this rank's elements by factor and sums the products. Ranks may use different factors. For
// integer elements factor must be a whole number.
func PreMulSum(factor float64) Op { return madeOp{core.PreMulSum(factor)} }

// NewOp is an operation of the caller's own on elements of type T, known to all ranks by name. combine sets every
// element of acc to acc op in; the two are equally long pieces of the vectors. The operation must be associative. One
// that is not commutative is applied strictly in order of rank.
func NewOp[T Element](name string, commutative bool, combine func(acc, in []T)) Op {
	return NewBlockOp(name, 1, commutative, combine)
}

// NewBlockOp is NewOp for values that take block elements each, such as small matrices: acc and in hold whole values.
func NewBlockOp[T Element](name string, block int, commutative bool, combine func(acc, in []T)) Op {
	var kernel reduce.Kernel
	if combine != nil {
		kernel = reduce.Custom(combine)
	}
	return madeOp{core.NewOwn(name, typeOf[T](), block, commutative, kernel)}
}
