package cborcodec

import (
	"fmt"
	"reflect"
)

// maxNesting is how deep arrays, maps and structs may be nested.
const maxNesting = 64

// checkWhole returns what of v would be lost on the way, if anything.
func (c Codec) checkWhole(v any) error {
	if v == nil {
		return nil
	}
	return c.checkValue(reflect.ValueOf(v), 0, 0)
}

// checkValue examines v, which is nested so deep, and is reached through so many pointers and interfaces in a row.
func (c Codec) checkValue(v reflect.Value, nested, hops int) error {
	t := objectTypeOf(v.Type())
	switch {
	case t.lost != nil || !t.open:
		return t.lost
	case nested > maxNesting || hops > maxNesting:
		return fmt.Errorf("%v is nested more than %d deep, or holds itself", v.Type(), maxNesting)
	}
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return c.checkValue(v.Elem(), nested, hops+1)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if err := c.checkValue(v.Index(i), nested+1, 0); err != nil {
				return err
			}
		}
	case reflect.Map:
		return c.checkMap(v, nested)
	case reflect.Struct:
		for _, path := range t.fields {
			f, err := v.FieldByIndexErr(path)
			if err != nil { // of an embedded struct that is not there
				continue
			}
			if err := c.checkValue(f, nested+1, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkMap examines the keys and values of v. It refuses two keys that are encoded alike.
func (c Codec) checkMap(v reflect.Value, nested int) error {
	var seen map[string]any
	if mayCoincide(v.Type().Key()) {
		seen = make(map[string]any, v.Len())
	}
	for key, elem := range v.Seq2() {
		for _, part := range []reflect.Value{key, elem} {
			if err := c.checkValue(part, nested+1, 0); err != nil {
				return err
			}
		}
		if seen == nil {
			continue
		}
		encoded, err := c.EncMode.Marshal(key.Interface())
		if err != nil {
			return err
		}
		if other, ok := seen[string(encoded)]; ok {
			return fmt.Errorf("keys %v (%T) and %v (%T) of %v are encoded alike, and one of them would be lost", other, other, key, key.Interface(), v.Type())
		}
		seen[string(encoded)] = key.Interface()
	}
	return nil
}
