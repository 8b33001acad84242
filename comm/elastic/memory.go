package elastic

import (
	"reflect"
	"unsafe"

	"github.com/gorun/gorun/comm/internal/cborcodec"
)

// memory calls visit with all memory that a commit of the item is made of: the variable, and what it points to. Of what encodes itself, that is
// what it points to directly: nobody but its type knows which parts are behind that.
func (i Item) memory(visit func(b []byte)) {
	if !i.isValue() {
		visit(i.bytes)
		return
	}
	(&walk{visit: visit}).reach(i.value)
}

// mostDepth is more steps than there are to any part of a value that can be encoded. A commit of a deeper one fails.
const mostDepth = 1 << 13

// A walk visits memory to which a value leads.
type walk struct {
	visit func(b []byte)
	seen  map[place]bool
	depth int // steps from the value
}

// A place is memory that the walk has visited: n elements of a type, or a map with n entries.
type place struct {
	at  unsafe.Pointer
	n   int
	typ reflect.Type
}

func (w *walk) reach(v reflect.Value) {
	switch t := v.Type(); {
	case !mayPoint(t) || w.depth == mostDepth:
		return
	case t.Kind() != reflect.Pointer && encodesItself(t):
		w.held(v)
		return
	}
	w.depth++
	defer func() { w.depth-- }()
	switch v.Kind() {
	case reflect.Pointer:
		if w.enter(v, 1) {
			w.reach(v.Elem())
		}
	case reflect.Slice:
		if w.enter(v, v.Len()) && mayPoint(v.Type().Elem()) {
			for _, e := range v.Seq2() {
				w.reach(e)
			}
		}
	case reflect.Array:
		for _, e := range v.Seq2() {
			w.reach(e)
		}
	case reflect.Struct:
		for f, e := range v.Fields() {
			if (f.IsExported() || f.Anonymous) && !cborcodec.IsLeftOut(f) {
				w.reach(e)
			}
		}
	case reflect.Map:
		if w.isNew(place{v.UnsafePointer(), v.Len(), v.Type()}) {
			for k, e := range v.Seq2() {
				w.reach(k)
				w.reach(e)
			}
		}
	case reflect.Interface:
		if !v.IsNil() {
			w.reach(v.Elem())
		}
	}
}

// enter visits the n elements at which v, a pointer or a slice, points, and reports whether there are any, for the first time.
func (w *walk) enter(v reflect.Value, n int) bool {
	t := v.Type().Elem()
	if v.IsNil() || n == 0 || !w.isNew(place{v.UnsafePointer(), n, t}) {
		return false
	}
	w.elements(v, n)
	return true
}

func (w *walk) elements(v reflect.Value, n int) {
	w.visit(unsafe.Slice((*byte)(v.UnsafePointer()), uintptr(n)*v.Type().Elem().Size()))
}

// held visits the memory to which v, which encodes itself, or its fields point. It reads none of that memory, which others may use.
func (w *walk) held(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			w.elements(v, 1)
		}
	case reflect.Slice:
		if v.Len() > 0 {
			w.elements(v, v.Len())
		}
	case reflect.Array:
		for _, e := range v.Seq2() {
			w.held(e)
		}
	case reflect.Struct:
		for f, e := range v.Fields() {
			if !cborcodec.IsLeftOut(f) {
				w.held(e)
			}
		}
	}
}

func (w *walk) isNew(p place) bool {
	if w.seen == nil {
		w.seen = make(map[place]bool)
	}
	known := w.seen[p]
	w.seen[p] = true
	return !known
}

// mayPoint reports whether values of type t may point to other memory to which an operation can write. To a string, none can.
func mayPoint(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
		return true
	case reflect.Array:
		return mayPoint(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if mayPoint(f.Type) {
				return true
			}
		}
	}
	return false
}
