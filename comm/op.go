package comm

import (
	"fmt"
	"math"

	"github.com/gorun/gorun/comm/internal/reduce"
)

// An Op combines the elements of all ranks into one: [Sum], [Prod], [Min], [Max], [BitAnd], [BitOr], [BitXor],
// [Avg] or [PreMulSum].
type Op interface {
	fmt.Stringer
	reduction() reduction
}

// reduction is what an Op does: scale what goes in, combine, divide what comes out.
type reduction struct {
	code    uint8 // the same number on every rank
	kernel  reduce.Op
	scale   float64 // used when scaled
	scaled  bool
	average bool
}

type basicOp uint8

// The operations. BitAnd, BitOr and BitXor are for integers; Min and Max for everything but complex numbers.
const (
	Sum basicOp = iota + 1
	Prod
	Min
	Max
	BitAnd
	BitOr
	BitXor
	Avg // the sum divided by the number of ranks in the group
)

const codePreMulSum = uint8(Avg) + 1

var basicOps = [...]struct {
	name   string
	kernel reduce.Op
}{
	Sum: {"Sum", reduce.Sum}, Prod: {"Prod", reduce.Prod}, Min: {"Min", reduce.Min}, Max: {"Max", reduce.Max},
	BitAnd: {"BitAnd", reduce.And}, BitOr: {"BitOr", reduce.Or}, BitXor: {"BitXor", reduce.Xor}, Avg: {"Avg", reduce.Sum},
}

func (o basicOp) String() string { return basicOps[o].name }

func (o basicOp) reduction() reduction {
	return reduction{code: uint8(o), kernel: basicOps[o].kernel, average: o == Avg}
}

type preMulSum float64

// PreMulSum multiplies this rank's elements by factor and sums the products. Ranks may use different factors. For
// integer elements factor must be a whole number.
func PreMulSum(factor float64) Op { return preMulSum(factor) }

func (f preMulSum) String() string { return fmt.Sprintf("PreMulSum(%v)", float64(f)) }

func (f preMulSum) reduction() reduction {
	return reduction{code: codePreMulSum, kernel: reduce.Sum, scale: float64(f), scaled: true}
}

// opName is the name of a reduction by the number that travels.
func opName(code uint8) string {
	switch {
	case code == codePreMulSum:
		return "PreMulSum"
	case code > 0 && int(code) < len(basicOps):
		return basicOps[code].name
	}
	return fmt.Sprintf("Op(%d)", code)
}

// resolve checks that op makes sense for elements of type t.
func resolve(op Op, t reduce.Type) (reduction, reduce.Kernel, error) {
	if op == nil {
		return reduction{}, nil, fmt.Errorf("no operation given: want Sum, Prod, Min, Max, BitAnd, BitOr, BitXor, Avg or PreMulSum")
	}
	r := op.reduction()
	k := reduce.For(t, r.kernel)
	if k == nil {
		return r, nil, fmt.Errorf("%v has no meaning for %v", op, t)
	}
	if r.scaled && t < reduce.Float32 && (r.scale != math.Trunc(r.scale) || math.Abs(r.scale) > 1<<53) {
		return r, nil, fmt.Errorf("%v: the factor must be a whole number for %v", op, t)
	}
	return r, k, nil
}
