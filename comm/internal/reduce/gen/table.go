package main

import (
	"bytes"
	"fmt"
	"go/format"
	"log"
)

// fields are those of package reduce's assembly, and their types.
var fields = []struct {
	name  string
	typ   string
	byOps bool // has a cell for every type and operation, not only every type
}{
	{"combine", "[numTypes][numOps]func(dst, a, b *byte, n int)", true},
	{"accumulate", "[numTypes][numOps]func(acc *float32, src *byte, n int)", true},
	{"widen", "[numTypes]func(dst *float32, src *byte, n int)", false},
	{"narrow", "[numTypes]func(dst *byte, src *float32, n int)", false},
	{"multiply", "[numTypes]func(v *byte, n int, by float64)", false},
	{"divide", "[numTypes]func(v *byte, n int, by float64)", false},
}

var types = []string{
	"Int8", "Int16", "Int32", "Int64", "Uint8", "Uint16", "Uint32", "Uint64",
	"Float32", "Float64", "Complex64", "Complex128", "Float16", "BFloat16",
}

// table is the Go file that declares the functions, and has a table of them for each level.
func table(all []kernel) []byte {
	var b bytes.Buffer
	b.WriteString(generated + "\npackage reduce\n")
	for _, l := range []level{avx2, avx512} {
		b.WriteString("\n")
		tableOf(&b, l, all)
	}
	text, err := format.Source(b.Bytes())
	if err != nil {
		log.Fatalf("%v in\n%s", err, b.Bytes())
	}
	return text
}

// tableOf declares the functions of l. Only the table calls them, so it makes no difference to the compiler whether
// they keep a pointer.
func tableOf(b *bytes.Buffer, l level, all []kernel) {
	entries := make(map[[2]string]string) // of a field and a type
	for _, k := range all {
		if l.code(k.code) == "" {
			continue
		}
		function := k.name + l.name
		fmt.Fprintf(b, "func %s%s\n", function, k.loop.signature())
		for _, c := range k.cells {
			if c.op != "" {
				function = fmt.Sprintf("%s: %s, ", c.op, k.name+l.name)
			}
			entries[[2]string{c.field, c.typ}] += function
		}
	}
	whole := 1
	if !l.masks {
		whole = l.bytes
	}
	fmt.Fprintf(b, "\nvar code%s = assembly{\nbytes: %d,\nfloats: %d,\n", l.name, whole, max(1, whole/4))
	for _, f := range fields {
		fmt.Fprintf(b, "%s: %s{\n", f.name, f.typ)
		for _, typ := range types {
			switch entry := entries[[2]string{f.name, typ}]; {
			case entry == "":
			case f.byOps:
				fmt.Fprintf(b, "%s: {%s},\n", typ, entry)
			default:
				fmt.Fprintf(b, "%s: %s,\n", typ, entry)
			}
		}
		b.WriteString("},\n")
	}
	b.WriteString("}\n")
}
