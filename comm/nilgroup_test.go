package comm

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// callsOnNoGroup has a call of every exported function that takes a Group, without a group.
func callsOnNoGroup(ctx context.Context) map[string]func() error {
	none := (*Group)(nil)
	buf, parts, objects := []BFloat16{1, 2}, [][]BFloat16{{1}, {2}}, []any{new(int)}
	return map[string]func() error{
		"Barrier":            func() error { return Barrier(ctx, none) },
		"MonitoredBarrier":   func() error { return MonitoredBarrier(ctx, none) },
		"Broadcast":          func() error { return Broadcast(ctx, none, buf, 0) },
		"AllReduce":          func() error { return AllReduce(ctx, none, buf, Sum) },
		"AllReduceCoalesced": func() error { return AllReduceCoalesced(ctx, none, parts, Sum) },
		"Reduce":             func() error { return Reduce(ctx, none, buf, Avg, 0) },
		"AllReduceTo":        func() error { return AllReduceTo(ctx, none, buf, buf, Sum) },
		"ReduceTo":           func() error { return ReduceTo(ctx, none, buf, buf, Sum, 0) },
		"ScanTo":             func() error { return ScanTo(ctx, none, buf, buf, Sum) },
		"ExScanTo":           func() error { return ExScanTo(ctx, none, buf, buf, Sum) },
		"ReduceScatter":      func() error { return ReduceScatter(ctx, none, buf, buf, Sum) },
		"ReduceScatterV":     func() error { return ReduceScatterV(ctx, none, buf, parts, Sum) },
		"Scan":               func() error { return Scan(ctx, none, buf, Sum) },
		"ExScan":             func() error { return ExScan(ctx, none, buf, Sum) },
		"AllGather":          func() error { return AllGather(ctx, none, buf, buf) },
		"AllGatherV":         func() error { return AllGatherV(ctx, none, parts, buf) },
		"Gather":             func() error { return Gather(ctx, none, buf, buf, 0) },
		"GatherV":            func() error { return GatherV(ctx, none, parts, buf, 0) },
		"Scatter":            func() error { return Scatter(ctx, none, buf, buf, 0) },
		"ScatterV":           func() error { return ScatterV(ctx, none, buf, parts, 0) },
		"AllToAll":           func() error { return AllToAll(ctx, none, buf, buf) },
		"AllToAllV":          func() error { return AllToAllV(ctx, none, buf, []int{2}, buf, []int{2}) },
		"Send":               func() error { return Send(ctx, none, buf, 0) },
		"Recv":               func() error { _, err := Recv(ctx, none, buf, 0); return err },
		"Probe":              func() error { _, err := Probe(ctx, none, 0); return err },
		"TryProbe":           func() error { _, _, err := TryProbe(none, 0); return err },
		"SendObjects":        func() error { return SendObjects(ctx, none, objects, 0) },
		"RecvObjects":        func() error { _, err := RecvObjects(ctx, none, objects, 0); return err },
		"BroadcastObjects":   func() error { return BroadcastObjects(ctx, none, objects, 0) },
		"BroadcastObject":    func() error { _, err := BroadcastObject(ctx, none, 1, 0); return err },
		"AllGatherObject":    func() error { _, err := AllGatherObject(ctx, none, 1); return err },
		"GatherObject":       func() error { _, err := GatherObject(ctx, none, 1, 0); return err },
		"ScatterObject":      func() error { _, err := ScatterObject(ctx, none, []int{1}, 0); return err },
		"NewGroup":           func() error { _, err := NewGroup(ctx, none, []int{0}); return err },
		"NewGroupOf":         func() error { _, err := NewGroupOf(ctx, none, []int{0}, "a"); return err },
		"Split":              func() error { _, err := Split(ctx, none, 0, 0); return err },
		"NewMesh":            func() error { _, err := NewMesh(ctx, none, []int{1}, "dp"); return err },
		"Alloc":              func() error { _, err := Alloc[int](none, 1); return err },
		"Free":               func() error { return Free(none, buf) },

		"IBarrier":            func() error { return IBarrier(none).Wait(ctx) },
		"IBroadcast":          func() error { return IBroadcast(none, buf, 0).Wait(ctx) },
		"IAllReduce":          func() error { return IAllReduce(none, buf, Sum).Wait(ctx) },
		"IAllReduceCoalesced": func() error { return IAllReduceCoalesced(none, parts, Sum).Wait(ctx) },
		"IReduce":             func() error { return IReduce(none, buf, Sum, 0).Wait(ctx) },
		"IAllReduceTo":        func() error { return IAllReduceTo(none, buf, buf, Sum).Wait(ctx) },
		"IReduceTo":           func() error { return IReduceTo(none, buf, buf, Sum, 0).Wait(ctx) },
		"IScan":               func() error { return IScan(none, buf, Sum).Wait(ctx) },
		"IScanTo":             func() error { return IScanTo(none, buf, buf, Sum).Wait(ctx) },
		"IExScan":             func() error { return IExScan(none, buf, Sum).Wait(ctx) },
		"IExScanTo":           func() error { return IExScanTo(none, buf, buf, Sum).Wait(ctx) },
		"IReduceScatterV":     func() error { return IReduceScatterV(none, buf, parts, Sum).Wait(ctx) },
		"IAllGatherV":         func() error { return IAllGatherV(none, parts, buf).Wait(ctx) },
		"IGatherV":            func() error { return IGatherV(none, parts, buf, 0).Wait(ctx) },
		"IScatterV":           func() error { return IScatterV(none, buf, parts, 0).Wait(ctx) },
		"IReduceScatter":      func() error { return IReduceScatter(none, buf, buf, Sum).Wait(ctx) },
		"IAllGather":          func() error { return IAllGather(none, buf, buf).Wait(ctx) },
		"IGather":             func() error { return IGather(none, buf, buf, 0).Wait(ctx) },
		"IScatter":            func() error { return IScatter(none, buf, buf, 0).Wait(ctx) },
		"IAllToAll":           func() error { return IAllToAll(none, buf, buf).Wait(ctx) },
		"AllToAllW":           func() error { return AllToAllW(ctx, none, [][]BFloat16{buf}, [][]BFloat16{buf}) },
		"IAllToAllW":          func() error { return IAllToAllW(none, [][]BFloat16{buf}, [][]BFloat16{buf}).Wait(ctx) },
		"IAllToAllV":          func() error { return IAllToAllV(none, buf, []int{2}, buf, []int{2}).Wait(ctx) },
		"ISend":               func() error { return ISend(none, buf, 0).Wait(ctx) },
		"IRecv":               func() error { return IRecv(none, buf, 0).Wait(ctx) },
		"SendOp":              func() error { return Batch(SendOp(none, buf, 0))[0].Wait(ctx) },
		"RecvOp":              func() error { return Batch(RecvOp(none, buf, 0))[0].Wait(ctx) },
		"NewBucketer": func() error {
			b := NewBucketer[float32](none, Sum, 1)
			b.Add([]float32{1})
			return b.Flush(ctx)
		},
	}
}

// A call on the group of others, which is nil, says so.
func TestCallsOnNoGroup(t *testing.T) {
	calls := callsOnNoGroup(t.Context())
	for _, f := range functionsOfGroups(t) {
		name := f.Name.Name
		if calls[name] == nil {
			t.Errorf("%s takes a Group: add it to callsOnNoGroup", name)
		}
	}
	for name, call := range calls {
		shown := map[string]string{
			"SendOp": "Send", "RecvOp": "Recv", "TryProbe": "Probe", "NewBucketer": "AllReduceCoalesced", "BroadcastObject": "BroadcastObjects",
			"AllToAllW": "AllToAllV", "IAllToAllW": "AllToAllV", // as other ranks may call that
		}[name]
		if shown == "" { // an I-form has the name of the call
			shown = name
			if _, ok := calls[strings.TrimPrefix(name, "I")]; ok {
				shown = strings.TrimPrefix(name, "I")
			}
			shown = strings.TrimSuffix(shown, "To") // as other ranks may call the form in place
		}
		want := "comm: " + shown + ": the group is nil, as it is on ranks that are none of its members"
		if err := call(); err == nil || !strings.HasPrefix(err.Error(), want) || ExitCode(err) != 2 {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
}

// The rank in a nil group, which is -1, is no root either.
func TestRootOfNoGroup(t *testing.T) {
	ctx, none := t.Context(), (*Group)(nil)
	root := none.Rank()
	buf, parts := []int{1, 2}, [][]int{{1}, {2}}
	for name, call := range map[string]func() error{
		"Broadcast":        func() error { return Broadcast(ctx, none, buf, root) },
		"Reduce":           func() error { return Reduce(ctx, none, buf, Sum, root) },
		"Gather":           func() error { return Gather(ctx, none, buf, buf, root) },
		"GatherV":          func() error { return GatherV(ctx, none, parts, buf, root) },
		"Scatter":          func() error { return Scatter(ctx, none, buf, buf, root) },
		"ScatterV":         func() error { return ScatterV(ctx, none, buf, parts, root) },
		"BroadcastObjects": func() error { return BroadcastObjects(ctx, none, []any{new(int)}, root) },
		"GatherObject":     func() error { _, err := GatherObject(ctx, none, 1, root); return err },
		"ScatterObject":    func() error { _, err := ScatterObject(ctx, none, []int{1}, root); return err },
		"Send":             func() error { return Send(ctx, none, buf, root) },
		"SendObjects":      func() error { return SendObjects(ctx, none, []any{new(int)}, root) },
	} {
		if err := call(); ExitCode(err) != 2 || !strings.HasPrefix(err.Error(), "comm: "+name+": the group is nil") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// functionsOfGroups are the package's exported functions that take a Group, read from its source: generic functions are
// not there at run time.
func functionsOfGroups(t *testing.T) (functions []*ast.FuncDecl) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !f.Name.IsExported() {
				continue
			}
			for _, p := range f.Type.Params.List {
				if pointsTo(p.Type) == "Group" {
					functions = append(functions, f)
				}
			}
		}
	}
	if len(functions) < 40 {
		t.Fatalf("found no more than %d functions", len(functions))
	}
	return functions
}

// pointsTo is the name of the type to which expr is a pointer, or nothing.
func pointsTo(expr ast.Expr) string {
	star, ok := expr.(*ast.StarExpr)
	if !ok {
		return ""
	}
	if generic, ok := star.X.(*ast.IndexExpr); ok {
		return fmt.Sprint(generic.X)
	}
	return fmt.Sprint(star.X)
}

// Every method of what may be nil, or has been made by no call, returns: an error, if it can return one.
func TestMethodsOfNothing(t *testing.T) {
	closes := []string{"Group.Close", "Mesh.Close"} // as in defer g.Close()
	nothings := []any{
		(*Group)(nil), (*Mesh)(nil), &Mesh{}, (*Work)(nil), &Work{}, (*Bucketer[float32])(nil), &Bucketer[float32]{},
	}
	for _, f := range functionsOfGroups(t) {
		for _, result := range f.Type.Results.List {
			name := pointsTo(result.Type)
			if name != "" && !slices.ContainsFunc(nothings, func(v any) bool { return strings.HasPrefix(reflect.TypeOf(v).Elem().Name(), name) }) {
				t.Errorf("%s returns a *%s: add it here", f.Name.Name, name)
			}
		}
	}
	for _, none := range nothings {
		v := reflect.ValueOf(none)
		for i := range v.NumMethod() {
			method, of := v.Type().Method(i), v.Type().Elem().Name()
			for _, out := range callWithZeros(t, v.Method(i)) {
				err, isError := out.Interface().(error)
				switch name := of + "." + method.Name; {
				case slices.Contains(closes, name) && err != nil:
					t.Errorf("%s of %v is %v", name, none, err)
				case slices.Contains(closes, name), name == "Work.Err", strings.HasPrefix(name, "Bucketer") && !v.IsNil():
				case out.Type() == reflect.TypeFor[error]() && (!isError || ExitCode(err) != 2):
					t.Errorf("%s of %#v returns the error %v", name, none, err)
				}
			}
		}
	}
	if err := (*Work)(nil).Err(); ExitCode(err) != 2 {
		t.Errorf("a nil Work has the error %v", err)
	}
	b := &Bucketer[float32]{}
	b.Add([]float32{1})
	if err := b.Flush(t.Context()); ExitCode(err) != 2 {
		t.Errorf("what is in a Bucketer of no group is flushed with %v", err)
	}
	var g *Group
	if g.Rank() != -1 || g.Size() != 0 || g.Ranks() != nil || g.WorldRank(0) != -1 || g.GroupRank(0) != -1 {
		t.Errorf("a nil Group has rank %d of %d, which are %v", g.Rank(), g.Size(), g.Ranks())
	}
	if text := fmt.Sprint(g); text != "no group" {
		t.Errorf("a nil Group prints as %q", text)
	}
}

// callWithZeros calls f with a context, and zeros for the rest.
func callWithZeros(t *testing.T, f reflect.Value) []reflect.Value {
	args := make([]reflect.Value, f.Type().NumIn())
	for i := range args {
		args[i] = reflect.Zero(f.Type().In(i))
		if f.Type().In(i) == reflect.TypeFor[context.Context]() {
			args[i] = reflect.ValueOf(t.Context())
		}
	}
	if f.Type().IsVariadic() {
		return f.CallSlice(args)
	}
	return f.Call(args)
}

// What comes of a name that a mesh does not have says which there are, at the first call.
func TestMistypedDimension(t *testing.T) {
	inWorldOf(t, 2, func(ctx context.Context, g *Group) error {
		m, err := NewMesh(ctx, g, []int{1, 2}, "dp", "tp")
		if err != nil {
			return err
		}
		err = Barrier(ctx, m.Group("pt"))
		if want := `finds no such dimension: "pt" was asked for, there are ["dp" "tp"]`; err == nil || !strings.Contains(err.Error(), want) {
			return fmt.Errorf("got %w, want one with %s", err, want)
		}
		if _, err := m.Slice("pt"); err == nil || !strings.Contains(err.Error(), `want different ones of ["dp" "tp"]`) {
			return fmt.Errorf("a slice: got %w", err)
		}
		if err := Barrier(ctx, g); err != nil { // here the ranks are one process, in which a mesh that is closed is forgotten
			return err
		}
		return m.Close()
	})
	if err := Barrier(t.Context(), nil); err == nil || strings.Contains(err.Error(), "dimension") {
		t.Errorf("once the mesh has been closed: got %v", err)
	}
}

// A program may close what NewGroup gives it on whichever rank.
func TestEveryRankClosesItsGroup(t *testing.T) {
	inWorldOf(t, 2, func(ctx context.Context, g *Group) (err error) {
		part, err := NewGroup(ctx, g, []int{1})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, part.Close()) }()
		part.Abort(nil)
		return nil
	})
}
