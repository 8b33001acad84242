package elastic

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/fxamacker/cbor/v2"

	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/comm/internal/cborcodec"
	"github.com/gorun/gorun/comm/internal/checkpoint"
)

// codec encodes values: equal ones as equal bytes.
var codec comm.Codec = cborcodec.New()

// maxValue is how many bytes a value may take.
const maxValue = comm.DefaultObjectLimit

// A valueTree is the Tree of a Value in a commit, and a sliceTree that of a Slice or a Part. Python has the same for
// variables of these kinds. Its other variables are trees of several nodes: see _variables.py.
type (
	valueTree struct {
		Value cbor.RawMessage `cbor:"value"`
	}
	sliceTree struct {
		Leaf leaf `cbor:"leaf"`
	}
	leaf struct {
		_       struct{} `cbor:",toarray"`
		Element string
		Shape   []int
	}
)

// entry encodes an item, but for the bytes of a slice. It returns a [comm.ArgumentError] if a value cannot be encoded.
func (i Item) entry() (checkpoint.Entry, error) {
	e := checkpoint.Entry{Name: i.name, Size: len(i.bytes)}
	var tree any = i.tree
	if i.isValue() {
		encoded, err := codec.Marshal(i.value.Interface())
		if err == nil && len(encoded) > maxValue {
			err = fmt.Errorf("it takes %d bytes: the limit is %d; use a Slice", len(encoded), maxValue)
		}
		if err != nil {
			return e, &comm.ArgumentError{Op: "elastic.Commit", Err: fmt.Errorf("%v cannot be encoded: %w", i, err)}
		}
		tree = valueTree{encoded}
	}
	var err error
	e.Tree, err = cbor.Marshal(tree)
	return e, err
}

// decode returns a new value of the item, as the entry has it. A slice has none: its length is checked. The error is a [comm.ArgumentError].
func (i Item) decode(e checkpoint.Entry) (value reflect.Value, err error) {
	refuse := func(err error) error {
		return &comm.ArgumentError{Op: "elastic.Restore", Err: fmt.Errorf("%v cannot be decoded: %w", i, err)}
	}
	if !i.isValue() {
		if e.Size != len(i.bytes) {
			return value, refuse(fmt.Errorf("it has %d bytes, and %d in the commit", len(i.bytes), e.Size))
		}
		var tree struct{ Leaf []any }
		if err := codec.Unmarshal(e.Tree, &tree); err != nil {
			return value, refuse(err)
		}
		if len(tree.Leaf) == 0 {
			return value, refuse(errors.New("it is no array in the commit"))
		}
		if of := tree.Leaf[0]; of != i.tree.Leaf.Element { // the layouts that ranks compare do not have Parts
			return value, refuse(fmt.Errorf("it is of %v in the commit", of))
		}
		return value, nil
	}
	var tree valueTree
	if err := codec.Unmarshal(e.Tree, &tree); err != nil {
		return value, refuse(err)
	}
	if tree.Value == nil {
		return value, refuse(errors.New("it is a state of Python"))
	}
	value = reflect.New(i.value.Type().Elem()) // a codec may merge into a value that is there
	if err := codec.Unmarshal(tree.Value, value.Interface()); err != nil {
		return value, refuse(err)
	}
	return value, nil
}
