package elastic

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"

	"github.com/fxamacker/cbor/v2"

	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/comm/internal/reduce"
)

// An Item is a variable of a [State], with its name: see [Value], [Slice] and [Part].
type Item struct {
	name  string
	typ   string        // what has to be the same on all ranks, unless it is a Part
	value reflect.Value // a pointer to the variable of a Value; otherwise none
	bytes []byte        // the memory of a Slice, or a Part
	tree  sliceTree     // describes bytes
	part  bool
}

// Value is an item for the variable that p points to. It may be anything that package comm's object functions carry: see
// [comm.BroadcastObjects]. A large vector is better a [Slice].
func Value[T any](name string, p *T) Item {
	return Item{name: name, typ: signature(reflect.TypeFor[T]()), value: reflect.ValueOf(p)}
}

// Slice is an item for the elements of s. Run writes to them in place, so their number does not change. Use a [Value] for a slice that grows,
// since append may return other memory. s is not memory of [comm.Alloc]: Alloc takes a world, and there is none before Run.
func Slice[T comm.Element](name string, s []T) Item {
	element := elementName(reflect.TypeFor[T]())
	tree := sliceTree{Leaf: leaf{Element: element, Shape: []int{len(s)}}}
	return Item{name: name, typ: fmt.Sprintf("%s × %d", element, len(s)), bytes: reduce.Bytes(s), tree: tree}
}

// Part is an item for elements that belong to this rank alone, such as its shard of a model. No other rank has a Part of the same name. After
// each commit, its contents are sent to another rank, on another node if there is one. A rank that is started again gets them back from there,
// if its State has a Part of this name and length. If both ranks are gone, Run returns an error on all that are left. A job with Parts keeps its
// number of ranks.
func Part[T comm.Element](name string, s []T) Item {
	i := Slice(name, s)
	i.part = true
	return i
}

func (i Item) isValue() bool { return i.value.IsValid() }

// String is the item in an error.
func (i Item) String() string { return fmt.Sprintf("%q (%s)", i.name, i.typ) }

// elementName returns the name of the element type as which t is kept: that of comm, without the names that a program gives.
func elementName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int:
		return fmt.Sprintf("int%d", t.Bits())
	case reflect.Uint, reflect.Uintptr:
		return fmt.Sprintf("uint%d", t.Bits())
	}
	if t == reflect.TypeFor[comm.Float16]() || t == reflect.TypeFor[comm.BFloat16]() {
		return strings.ToLower(t.Name()) // as Python does
	}
	return t.Kind().String()
}

// signature describes a type with all its fields. Programs of two versions may have different types of one name, and CBOR would leave out
// a field that the other side does not have.
func signature(t reflect.Type) string {
	var b strings.Builder
	describe(&b, t, make(map[reflect.Type]bool))
	return b.String()
}

func describe(b *strings.Builder, t reflect.Type, seen map[reflect.Type]bool) {
	if t.Name() != "" {
		b.WriteString(t.String())
		if seen[t] || t.PkgPath() == "" || encodesItself(t) {
			return
		}
		seen[t] = true
		b.WriteByte(' ')
	}
	switch t.Kind() {
	case reflect.Pointer:
		b.WriteByte('*')
		describe(b, t.Elem(), seen)
	case reflect.Slice:
		b.WriteString("[]")
		describe(b, t.Elem(), seen)
	case reflect.Array:
		fmt.Fprintf(b, "[%d]", t.Len())
		describe(b, t.Elem(), seen)
	case reflect.Map:
		b.WriteString("map[")
		describe(b, t.Key(), seen)
		b.WriteByte(']')
		describe(b, t.Elem(), seen)
	case reflect.Struct:
		b.WriteString("struct {")
		for i := range t.NumField() {
			f := t.Field(i)
			fmt.Fprintf(b, " %s ", f.Name)
			describe(b, f.Type, seen)
			if f.Tag != "" {
				fmt.Fprintf(b, " %q", f.Tag)
			}
			b.WriteByte(';')
		}
		b.WriteString(" }")
	default:
		b.WriteString(t.Kind().String())
	}
}

// encodesItself reports whether t has a method of its own to encode it. Then its fields do not matter.
func encodesItself(t reflect.Type) bool {
	for _, of := range []reflect.Type{reflect.TypeFor[cbor.Marshaler](), reflect.TypeFor[encoding.BinaryMarshaler]()} {
		if t.Implements(of) || reflect.PointerTo(t).Implements(of) {
			return true
		}
	}
	return false
}
