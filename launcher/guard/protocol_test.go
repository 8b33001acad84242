package guard

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestGuardProtocolRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Map(rapid.SliceOf(rapid.ByteMin(1)), func(b []byte) string { return string(b) }) // not only UTF-8
		list := rapid.SliceOf(text)
		argv, env := list.Draw(t, "argv"), list.Draw(t, "env")
		req := Request{Programs: [][]byte{Pack(argv)}, Workers: []Worker{{Env: Pack(env), CPUs: []int{0, 3}}}}
		got := crossed(t, req)
		if !slices.Equal(unpack(got.Programs[0]), argv) ||
			!slices.Equal(unpack(got.Workers[0].Env), env) || !slices.Equal(got.Workers[0].CPUs, []int{0, 3}) {
			t.Fatalf("sent %+v, got %+v", req, got)
		}
	})
	c := command{Verb: verbStop, Workers: []int{0, 2}, Signal: 15, Grace: 30 * time.Second}
	if got := crossed(t, c); !reflect.DeepEqual(got, c) {
		t.Errorf("sent %+v, got %+v", c, got)
	}
	for _, e := range []Event{
		{Started: map[int]int{0: 7, 1: 8}}, {NotStarted: &NotStarted{Worker: 0, Errno: 2}},
		{NotStarted: &NotStarted{Worker: 1, Reason: "no such CPU"}}, {Warning: "careful"},
		{Exit: &Exit{Worker: 0, Status: 0x8b, At: time.Now().UnixNano(), Stopped: true}},
		{Denied: []int{9}}, {Ended: []int{0}}, {Gone: true},
	} {
		if got := crossed(t, e); !reflect.DeepEqual(got, e) {
			t.Errorf("sent %+v, got %+v", e, got)
		}
	}
}

// crossed is a message after its way through the socket.
func crossed[M any](t interface{ Fatal(...any) }, m M) M {
	var wire bytes.Buffer
	if err := json.NewEncoder(&wire).Encode(m); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(wire.Bytes(), []byte("\n")); n != 1 {
		t.Fatal("not one line:", wire.String())
	}
	var got M
	if err := json.NewDecoder(&wire).Decode(&got); err != nil {
		t.Fatal(err)
	}
	return got
}
