package env_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/gorun/gorun/env"
)

var worker = env.Worker{
	Rank: 5, LocalRank: 1, WorldSize: 8, GroupRank: 1, Round: 2,
	MasterAddr: "10.0.0.7", MasterPort: 29500, Token: "s3cret",
}

func ExampleWorker_String() {
	fmt.Println(worker)
	// Output: rank 5 of 8 (local rank 1, node 1), round 2, master 10.0.0.7:29500
}

func TestTokenIsNeverPrinted(t *testing.T) {
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		fmt.Fprintf(&out, verb, worker)
		fmt.Fprintf(&out, verb, &worker)
		fmt.Fprintf(&out, verb, []env.Worker{worker})
	}
	slog.New(slog.NewTextHandler(&out, nil)).Info("start", "worker", worker, "at", &worker)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("start", "worker", worker)
	if err := json.NewEncoder(&out).Encode(worker); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"s3cret", fmt.Sprintf("%x", "s3cret")} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("the token is printed:\n%s", out.String())
		}
	}
}
