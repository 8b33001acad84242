package call

import (
	"errors"
	"fmt"
	"math"

	"github.com/gorun/gorun/comm/internal/reduce"
)

// A Reduction says what an operation does: scale the operands, combine them, and divide or normalize the result. The
// zero value is none.
type Reduction struct {
	Code      uint8 // the same number on every rank
	Kernel    reduce.Op
	Scaled    bool
	Average   bool
	Normalize bool
	plain     bool    // nothing but Kernel is to be done, with every element
	Width     int     // elements that make one value
	Scale     float64 // used when Scaled
	Own       *Own    // instead of Kernel
}

// The codes of operations beyond those of package reduce, whose numbers are codes as well. They travel between ranks.
const (
	CodeAvg = uint8(reduce.LastOp) + 1 + iota
	CodePreMulSum
	CodeOwn
)

// Basic are the operations that need no more than their code, which is their index.
var Basic = func() (basic [CodeAvg + 1]Reduction) {
	for o := reduce.Sum; o <= reduce.LastOp; o++ {
		basic[o] = Reduction{Code: uint8(o), Kernel: o, Width: 1, Normalize: o >= reduce.LogicalAnd && o <= reduce.LogicalXor}
	}
	basic[reduce.MinLoc].Width, basic[reduce.MaxLoc].Width = 2, 2
	basic[CodeAvg] = Reduction{Code: CodeAvg, Kernel: reduce.Sum, Width: 1, Average: true}
	for i := range basic {
		r := &basic[i]
		r.plain = r.Width == 1 && !r.Average && !r.Normalize
	}
	return basic
}()

// PreMulSum multiplies this rank's elements by factor and sums the products.
func PreMulSum(factor float64) *Reduction {
	return &Reduction{Code: CodePreMulSum, Kernel: reduce.Sum, Width: 1, Scale: factor, Scaled: true}
}

// An Own is an operation of the caller's own.
type Own struct {
	name        string
	typ         reduce.Type
	commutative bool
	kernel      reduce.Kernel
	checksum    uint32 // of what ranks must agree on beyond the code
}

// NewOwn returns the operation called name, on values of block elements of type t. kernel combines them; it is nil if
// the caller has passed none.
func NewOwn(name string, t reduce.Type, block int, commutative bool, kernel reduce.Kernel) *Reduction {
	o := &Own{name: name, typ: t, commutative: commutative, kernel: kernel}
	o.checksum = uint32(Checksum(name, block, commutative))
	described := name
	if block > 1 {
		described += fmt.Sprintf(" in blocks of %d", block)
	}
	if !commutative {
		described += " in order of rank"
	}
	texts.Store(o.checksum, described)
	return &Reduction{Code: CodeOwn, Width: block, Own: o}
}

func (r *Reduction) String() string {
	switch {
	case r.Own != nil:
		return r.Own.name
	case r.Scaled:
		return fmt.Sprintf("PreMulSum(%v)", r.Scale)
	}
	return opName(r.Code, 0)
}

// Ordered reports whether the order of operands matters to r.
func (r *Reduction) Ordered() bool { return r.Own != nil && !r.Own.commutative }

// IsPlain reports whether r needs only a kernel of package reduce.
func (r *Reduction) IsPlain() bool { return r.plain }

// Detail returns what ranks must agree on beyond r's code.
func (r *Reduction) Detail() uint32 {
	if r.Own == nil {
		return 0
	}
	return r.Own.checksum
}

// Resolve checks that r is possible for n elements of type t in a call of kind, and returns its kernel.
func (r *Reduction) Resolve(kind Kind, t reduce.Type, n int) (reduce.Kernel, error) {
	if r.Code == 0 {
		return nil, errors.New("no operation given: want Sum, Prod, Min, Max or another Op")
	}
	k := reduce.For(t, r.Kernel)
	if k != nil && r.IsPlain() {
		return k, nil
	}
	if r.Own != nil {
		if err := r.checkOwn(t); err != nil {
			return nil, err
		}
		k = r.Own.kernel
	}
	switch {
	case k == nil:
		return nil, fmt.Errorf("%v has no meaning for %v", r, t)
	case r.Average && (kind == KindScan || kind == KindExScan):
		return nil, fmt.Errorf("%v has no meaning for %v", r, kind)
	case r.Scaled && t < reduce.Float32 && (r.Scale != math.Trunc(r.Scale) || math.Abs(r.Scale) > 1<<53):
		return nil, fmt.Errorf("%v: the factor must be a whole number for %v", r, t)
	case n%r.Width != 0:
		return nil, fmt.Errorf("%v: %d elements given: want a multiple of %d", r, n, r.Width)
	}
	return k, nil
}

// checkOwn checks that r, an operation of the caller's own, can combine elements of type t.
func (r *Reduction) checkOwn(t reduce.Type) error {
	switch {
	case r.Own.kernel == nil:
		return fmt.Errorf("%v was made without a function", r)
	case r.Width < 1:
		return fmt.Errorf("%v was made for blocks of %d: want at least 1", r, r.Width)
	case r.Own.typ != t:
		return fmt.Errorf("%v is an operation on %v, not on %v", r, r.Own.typ, t)
	}
	return nil
}

// opName returns the name of a reduction by the numbers that travel.
func opName(code uint8, detail uint32) string {
	switch {
	case code == CodePreMulSum:
		return "PreMulSum"
	case code == CodeOwn:
		return textOf(detail, "own operation")
	case code == CodeAvg:
		return "Avg"
	case code > 0 && code <= uint8(reduce.LastOp):
		return reduce.Op(code).String()
	}
	return fmt.Sprintf("Op(%d)", code)
}
