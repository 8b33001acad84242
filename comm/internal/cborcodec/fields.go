package cborcodec

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// A fieldList has the fields that are encoded of a struct without encoding methods of its own. As in encoding/json, the fields of embedded
// structs belong to it. Of several fields with the same name all are left out, or all but one.
type fieldList struct {
	objectType
	named map[string]string // by the name that travels: the field
}

func examineStruct(t reflect.Type, within []reflect.Type) objectType {
	l := fieldList{named: map[string]string{}}
	l.addAll(t, nil, within)
	return l.objectType
}

// addAll adds the fields of t, to which path leads from the struct itself.
func (l *fieldList) addAll(t reflect.Type, path []int, within []reflect.Type) {
	for i := 0; i < t.NumField() && l.lost == nil; i++ {
		if f := t.Field(i); f.Name != "_" && !isLeftOut(f) {
			l.add(t, f, append(slices.Clip(path), i), within)
		}
	}
}

func (l *fieldList) add(t reflect.Type, f reflect.StructField, path []int, within []reflect.Type) {
	field, name, part := fmt.Sprintf("%v.%s", t, f.Name), travelsAs(f), pointee(f.Type)
	switch {
	case f.Anonymous && part.Kind() == reflect.Struct && name == "":
		if slices.Contains(within, part) {
			l.lost = fmt.Errorf("the fields of %s are those of %v, and would be lost: give it a name, or the tag `cbor:\"-\"` to leave it behind", field, part)
			return
		}
		l.addAll(part, path, append(slices.Clip(within), part))
		return
	case !f.IsExported():
		l.lost = fmt.Errorf("field %s is not exported, and would be lost: export it, give it the tag `cbor:\"-\"` to leave it behind, or give %v the methods MarshalBinary and UnmarshalBinary",
			field, t)
		return
	case name == "":
		name = f.Name
	}
	if other := l.named[name]; other != "" {
		l.lost = fmt.Errorf("fields %s and %s have one name, and one of them would be lost: give one the tag `cbor:\"-\"`, or `cbor:\"another name\"`", other, field)
		return
	}
	l.named[name] = field
	of := examine(f.Type, within)
	l.lost = of.lost
	if of.open {
		l.open, l.fields = true, append(l.fields, path)
	}
}

// tagOf returns the tag of f for CBOR.
func tagOf(f reflect.StructField) string {
	if tag := f.Tag.Get("cbor"); tag != "" {
		return tag
	}
	return f.Tag.Get("json")
}

// travelsAs returns the name that the tag of f gives it, or nothing.
func travelsAs(f reflect.StructField) string {
	name, options, _ := strings.Cut(tagOf(f), ",")
	if n, err := strconv.Atoi(name); err == nil && slices.Contains(strings.Split(options, ","), "keyasint") {
		return fmt.Sprint("number ", n) // 1, 01 and +1 are one
	}
	return name
}

func pointee(t reflect.Type) reflect.Type {
	for seen := t; t.Kind() == reflect.Pointer; {
		if t = t.Elem(); t == seen { // type p *p
			break
		}
	}
	return t
}

// isLeftOut reports whether the tag of f asks to leave it out.
func isLeftOut(f reflect.StructField) bool { return tagOf(f) == "-" }
