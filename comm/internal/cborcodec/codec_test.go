package cborcodec

import (
	"errors"
	"math"
	"math/big"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
)

var codec = New()

type shard struct {
	Name   string
	Files  []string
	Counts map[string]int
	Next   *shard
}

type (
	secretive struct {
		Name string
		rate float64
	}
	onPurpose struct {
		_     struct{} `cbor:",toarray"`
		Name  string
		cache map[string]int `cbor:"-"`
		mu    sync.Mutex     `json:"-"`
	}
	id      int
	tagged  struct{ id }
	base    struct{ ID, Kind int }
	shadows struct {
		base
		ID int
	}
	renames struct {
		base
		ID int `cbor:"own_id"`
	}
	left  struct{ X int }
	right struct{ X int }
	both  struct {
		left
		right
	}
	event struct {
		time.Time
		Name string
	}
	stamp  struct{ time.Time }
	within struct {
		*within
		X int
	}
	itself  *itself
	tree    struct{ Kids []*tree }
	numbers struct {
		A int `cbor:"1,keyasint"`
		B int `cbor:"01,keyasint"`
	}
	sealed   struct{ x, y int } // encodes itself
	sealedIn struct {
		sealed
		Label string
	}
	sealedAll struct { // has methods of its own
		sealed
		Label string
	}
	twoMethods struct { // of which neither is the struct's
		time.Time
		netip.Addr
	}
	textOnly struct{ text string }
)

func (s sealed) MarshalBinary() ([]byte, error) { return []byte{byte(s.x), byte(s.y)}, nil }
func (s *sealed) UnmarshalBinary(b []byte) error {
	s.x, s.y = int(b[0]), int(b[1])
	return nil
}

func (s *sealedAll) MarshalCBOR() ([]byte, error) {
	return cbor.Marshal([]any{s.x, s.y, s.Label})
}

func (s *sealedAll) UnmarshalCBOR(b []byte) error {
	var v struct {
		_     struct{} `cbor:",toarray"`
		X, Y  int
		Label string
	}
	err := cbor.Unmarshal(b, &v)
	*s = sealedAll{sealed{v.X, v.Y}, v.Label}
	return err
}

func (t textOnly) MarshalText() ([]byte, error)  { return []byte(t.text), nil }
func (t *textOnly) UnmarshalText(b []byte) error { t.text = string(b); return nil }

// What cannot be whole on the other side is refused, wherever in an object it lies.
func TestObjectsThatWouldLoseSomething(t *testing.T) {
	for want, lossy := range map[string]any{
		"field cborcodec.secretive.rate is not exported":                      secretive{"a", 2.5},
		"field cborcodec.tagged.id is not exported":                           tagged{3},
		"fields cborcodec.base.ID and cborcodec.shadows.ID have one name":     shadows{base{1, 2}, 3},
		"fields cborcodec.left.X and cborcodec.right.X have one name":         both{left{1}, right{2}},
		"of the fields Time, Name of cborcodec.event one is embedded":         event{time.Unix(5, 0).UTC(), "start"},
		"of the fields sealed, Label of cborcodec.sealedIn one is embedded":   sealedIn{sealed{1, 2}, "a"},
		"the fields of cborcodec.within.within are those of cborcodec.within": within{&within{nil, 1}, 2},
		"fields cborcodec.numbers.A and cborcodec.numbers.B have one name":    numbers{1, 2},
		"field time.Time.wall is not exported":                                twoMethods{time.Unix(5, 0), netip.IPv6Unspecified()},
		"field cborcodec.textOnly.text is not exported":                       textOnly{"a"},
		"field big.Float.prec is not exported":                                *big.NewFloat(2.5),
		"field big.Rat.a is not exported":                                     *big.NewRat(1, 3),
		"field errors.errorString.s is not exported":                          errors.New("disk full"),
		"of map[interface {}]string are encoded alike, and one of them":       map[any]string{1: "a", int8(1): "b"},
		"of map[float64]int are encoded alike":                                map[float64]int{math.NaN(): 1, math.Float64frombits(0x7ff8000000000001): 2},
		"of map[*int]int are encoded alike":                                   map[*int]int{new(int): 1, new(int): 2},
	} {
		for where, v := range nestings(lossy) {
			if _, err := codec.Marshal(v); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %s", where, err, want)
			}
		}
		// That is why: without a look at it, nothing is said, and another value arrives.
		b, err := codec.EncMode.Marshal(lossy)
		if err != nil {
			t.Errorf("%T is refused anyhow: %v", lossy, err)
			continue
		}
		got := reflect.New(reflect.TypeOf(lossy))
		if err := codec.Unmarshal(b, got.Interface()); err == nil && reflect.DeepEqual(got.Elem().Interface(), lossy) {
			t.Errorf("%#v loses nothing", lossy)
		}
	}
}

// nestings are objects in which v lies at different places.
func nestings(v any) map[string]any {
	p := reflect.New(reflect.TypeOf(v))
	p.Elem().Set(reflect.ValueOf(v))
	list := reflect.Append(reflect.MakeSlice(reflect.SliceOf(p.Elem().Type()), 0, 1), p.Elem())
	return map[string]any{
		"the value": v, "a pointer": p.Interface(), "a slice": list.Interface(), "an interface": &v,
		"a slice of any":                         []any{1, v},
		"a map of any":                           map[string]any{"a": 1, "b": []any{v}},
		"a struct of any":                        struct{ A, B any }{nil, map[int]any{1: v}},
		"a pointer to any in an embedded struct": struct{ Shell }{Shell{&v}},
		"an array":                               [1]any{p.Interface()},
		"a tag":                                  cbor.Tag{Number: 1000, Content: v},
	}
}

type Shell struct{ Inside *any }

// What CBOR or a type's own methods encode whole arrives as it was.
func TestObjectsThatArriveWhole(t *testing.T) {
	n, label := 3, any("x")
	for _, whole := range []any{
		1, "text \xff", []byte{1}, [2]bool{true, false}, math.Inf(-1), []float32{1.5}, struct{}{}, map[string][]int{"a": nil, "b": {}},
		time.Unix(7, 8).UTC(), *big.NewInt(1 << 62), netip.MustParseAddr("fd00::1%eth0"), url.URL{Scheme: "http", Host: "a", Path: "/b"},
		shard{Name: "bytes that are no text: \xff", Counts: map[string]int{"rank": 3}, Next: &shard{Files: []string{"a"}}}, &n, &label, tree{Kids: []*tree{nil, {Kids: []*tree{{}}}}}, renames{base{1, 2}, 3}, stamp{time.Unix(5, 0).UTC()},
		sealed{1, 2}, &sealedAll{sealed{1, 2}, "a"}, []sealedAll{{sealed{3, 4}, "b"}}, struct{ Base *Shell }{nil},
		struct{ *Shell }{}, struct{ Shell }{Shell{&label}}, map[float64]string{1: "a", -1: "b"}, map[[2]int]string{{1, 2}: "c"},
		map[any]any{int64(1): "a", "1": "b", 1.0: "c", true: nil}, cbor.RawMessage{0x01}, []any{int64(1), "a", nil, []any{}},
		struct{ Err error }{},
	} {
		b, err := codec.Marshal(whole)
		if err != nil {
			t.Errorf("%#v: %v", whole, err)
			continue
		}
		got := reflect.New(reflect.TypeOf(whole))
		if err := codec.Unmarshal(b, got.Interface()); err != nil || !reflect.DeepEqual(got.Elem().Interface(), whole) {
			t.Errorf("%#v arrives as %#v, %v", whole, got.Elem().Interface(), err)
		}
	}
	for _, bits := range []uint64{0x7ff8000000000123, 0xfff0000000000001} {
		b, err := codec.Marshal(math.Float64frombits(bits))
		var got float64
		if err := errors.Join(err, codec.Unmarshal(b, &got)); err != nil || math.Float64bits(got) != bits {
			t.Errorf("%x arrives as %x, %v", bits, math.Float64bits(got), err)
		}
	}
	b, err := codec.Marshal(&onPurpose{Name: "a", cache: map[string]int{"b": 1}})
	var got onPurpose
	if err := errors.Join(err, codec.Unmarshal(b, &got)); err != nil || got.Name != "a" || got.cache != nil {
		t.Errorf("what is left behind on purpose: %+v, %v", &got, err)
	}
	if !got.mu.TryLock() {
		t.Error("the mutex has come along")
	}
}

// What lies too deep for who decodes it, or holds itself, is refused where it is encoded.
func TestObjectsThatAreDeepOrEndless(t *testing.T) {
	for depth := maxNesting - 2; depth <= maxNesting+2; depth++ {
		list, node := any(1), &tree{}
		for range depth {
			list = []any{list}
		}
		for range depth / 2 {
			node = &tree{Kids: []*tree{node}}
		}
		for _, v := range []any{list, node} {
			b, err := codec.EncMode.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			_, refused := codec.Marshal(v)
			if taken := codec.Unmarshal(b, new(any)); (refused == nil) != (taken == nil) {
				t.Errorf("%T, %d deep, is encoded with %v and decoded with %v", v, depth, refused, taken)
			}
		}
	}
	var loop any
	loop = []any{&loop}
	var circle itself
	circle = &circle
	var self any
	self = &self
	ring := &tree{}
	ring.Kids = []*tree{ring}
	for _, v := range []any{loop, circle, self, ring, map[string]any{"loop": loop}} {
		if _, err := codec.Marshal(v); err == nil || !strings.Contains(err.Error(), "itself") {
			t.Errorf("%T: %v", v, err)
		}
	}
}
