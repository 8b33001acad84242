package comm

import (
	"errors"
	"fmt"
	"math"

	"github.com/gorun/gorun/comm/internal/reduce"
)

// An Op combines the elements of all ranks into one: [Sum], [Prod], [Min], [Max], [BitAnd], [BitOr], [BitXor],
// [LogicalAnd], [LogicalOr], [LogicalXor], [MinLoc], [MaxLoc], [Avg], [PreMulSum], or one of the caller's own made by
// [NewOp].
type Op interface {
	fmt.Stringer
	reduction() reduction
}

// reduction is what an Op does: scale what goes in, combine, divide or normalize what comes out.
type reduction struct {
	code      uint8 // the same number on every rank
	kernel    reduce.Op
	width     int     // elements that make one value
	scale     float64 // used when scaled
	scaled    bool
	average   bool
	normalize bool
	own       *ownOp // instead of kernel
}

// ordered says whether the order of operands matters to r.
func (r reduction) ordered() bool { return r.own != nil && !r.own.commutative }

type basicOp uint8

// The operations. BitAnd to LogicalXor are for integers; Min, Max, MinLoc and MaxLoc for everything but complex numbers.
const (
	Sum basicOp = iota + 1
	Prod
	Min
	Max
	BitAnd
	BitOr
	BitXor
	LogicalAnd // an element that is not 0 is true; the result is 0 or 1
	LogicalOr
	LogicalXor // whether an odd number of ranks has true
	// MinLoc and MaxLoc combine pairs of elements, a value and the place where it was found, such as the rank: the least or
	// greatest value wins, of equal ones that with the lowest place, and NaN over all.
	MinLoc
	MaxLoc
	Avg // the sum divided by the number of ranks in the group
)

// The numbers of operations that are not basic.
const (
	codePreMulSum = uint8(Avg) + 1 + iota
	codeOwn
)

var basicOps = [...]struct {
	name   string
	kernel reduce.Op
}{
	Sum: {"Sum", reduce.Sum}, Prod: {"Prod", reduce.Prod}, Min: {"Min", reduce.Min}, Max: {"Max", reduce.Max},
	BitAnd: {"BitAnd", reduce.And}, BitOr: {"BitOr", reduce.Or}, BitXor: {"BitXor", reduce.Xor},
	LogicalAnd: {"LogicalAnd", reduce.LogicalAnd}, LogicalOr: {"LogicalOr", reduce.LogicalOr},
	LogicalXor: {"LogicalXor", reduce.LogicalXor},
	MinLoc:     {"MinLoc", reduce.MinLoc}, MaxLoc: {"MaxLoc", reduce.MaxLoc}, Avg: {"Avg", reduce.Sum},
}

func (o basicOp) String() string { return basicOps[o].name }

func (o basicOp) reduction() reduction {
	r := reduction{code: uint8(o), kernel: basicOps[o].kernel, width: 1}
	switch o {
	case Avg:
		r.average = true
	case LogicalAnd, LogicalOr, LogicalXor:
		r.normalize = true
	case MinLoc, MaxLoc:
		r.width = 2
	default:
	}
	return r
}

type preMulSum float64

// PreMulSum multiplies this rank's elements by factor and sums the products. Ranks may use different factors. For
// integer elements factor must be a whole number.
func PreMulSum(factor float64) Op { return preMulSum(factor) }

func (f preMulSum) String() string { return fmt.Sprintf("PreMulSum(%v)", float64(f)) }

func (f preMulSum) reduction() reduction {
	return reduction{code: codePreMulSum, kernel: reduce.Sum, width: 1, scale: float64(f), scaled: true}
}

// opName is the name of a reduction by the numbers that travel.
func opName(code uint8, detail uint32) string {
	switch {
	case code == codePreMulSum:
		return "PreMulSum"
	case code == codeOwn:
		if text, ok := ownOps.Load(detail); ok {
			return text.(string)
		}
		return fmt.Sprintf("own operation with checksum %08x", detail)
	case code > 0 && int(code) < len(basicOps):
		return basicOps[code].name
	}
	return fmt.Sprintf("Op(%d)", code)
}

// resolve checks that op makes sense for n elements of type t in a call of kind, and returns what combines them.
func resolve(kind callKind, op Op, t reduce.Type, n int) (reduction, reduce.Kernel, error) {
	if op == nil {
		return reduction{}, nil, errors.New("no operation given: want Sum, Prod, Min, Max or another Op")
	}
	r := op.reduction()
	k := reduce.For(t, r.kernel)
	if r.own != nil {
		if err := r.own.check(t); err != nil {
			return r, nil, err
		}
		k = r.own.kernel
	}
	switch {
	case k == nil:
		return r, nil, fmt.Errorf("%v has no meaning for %v", op, t)
	case r.average && (kind == callScan || kind == callExScan):
		return r, nil, fmt.Errorf("%v has no meaning for %v", op, kind)
	case r.scaled && t < reduce.Float32 && (r.scale != math.Trunc(r.scale) || math.Abs(r.scale) > 1<<53):
		return r, nil, fmt.Errorf("%v: the factor must be a whole number for %v", op, t)
	case n%r.width != 0:
		return r, nil, fmt.Errorf("%v: %d elements given: want a multiple of %d", op, n, r.width)
	}
	return r, k, nil
}
