package comm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gorun/gorun/comm"
)

// A config is what rank 0 has read and the others need.
type config struct {
	Model  string
	Layers []int
}

func ExampleBroadcastObjects() {
	inWorld(2, func(ctx context.Context, world *comm.Group) error {
		var c config
		var anything any
		if world.Rank() == 0 {
			c, anything = config{"small", []int{64, 10}}, map[string]int{"seed": 7}
		}
		err := comm.BroadcastObjects(ctx, world, []any{&c, &anything}, 0)
		if world.Rank() == 1 {
			fmt.Println(c, anything)
		}
		return err
	})
	// Output: {small [64 10]} map[seed:7]
}

func ExampleBroadcastObject() {
	inWorld(2, func(ctx context.Context, world *comm.Group) error {
		var c config // matters only on rank 0
		if world.Rank() == 0 {
			c = config{"small", []int{64, 10}}
		}
		c, err := comm.BroadcastObject(ctx, world, c, 0)
		if world.Rank() == 1 {
			fmt.Println(c)
		}
		return err
	})
	// Output: {small [64 10]}
}

func ExampleSendObjects() {
	inWorld(2, func(ctx context.Context, world *comm.Group) error {
		if world.Rank() == 0 {
			return comm.SendObjects(ctx, world, []any{"weights", []float32{0.5, 1.5}}, 1)
		}
		var name string
		var values []float32
		_, err := comm.RecvObjects(ctx, world, []any{&name, &values}, 0)
		fmt.Println(name, values)
		return err
	})
	// Output: weights [0.5 1.5]
}

func ExampleRecvObjects() {
	inWorld(3, func(ctx context.Context, world *comm.Group) error {
		if world.Rank() > 0 {
			return comm.SendObjects(ctx, world, []any{fmt.Sprint("hello from ", world.Rank())}, 0)
		}
		for range 2 {
			var greeting string
			status, err := comm.RecvObjects(ctx, world, []any{&greeting}, comm.AnySource)
			if err != nil {
				return err
			}
			fmt.Println(status.Source, greeting)
		}
		return nil
	})
	// Unordered output:
	// 1 hello from 1
	// 2 hello from 2
}

func ExampleAllGatherObject() {
	inWorld(3, func(ctx context.Context, world *comm.Group) error {
		words := [][]string{{"a"}, nil, {"b", "c"}}
		all, err := comm.AllGatherObject(ctx, world, words[world.Rank()])
		if world.Rank() == 1 {
			fmt.Println(all)
		}
		return err
	})
	// Output: [[a] [] [b c]]
}

func ExampleGatherObject() {
	inWorld(3, func(ctx context.Context, world *comm.Group) error {
		metrics := map[string]float64{"loss": 1 / float64(1+world.Rank())}
		all, err := comm.GatherObject(ctx, world, metrics, 0)
		if world.Rank() == 0 {
			fmt.Println(len(all), all[1])
		}
		return err
	})
	// Output: 3 map[loss:0.5]
}

func ExampleScatterObject() {
	inWorld(2, func(ctx context.Context, world *comm.Group) error {
		var files [][]string // matter only on rank 0
		if world.Rank() == 0 {
			files = [][]string{{"train-0", "train-2"}, {"train-1"}}
		}
		mine, err := comm.ScatterObject(ctx, world, files, 0)
		if world.Rank() == 1 {
			fmt.Println(mine)
		}
		return err
	})
	// Output: [train-1]
}

// A jsonCodec lets objects travel as JSON.
type jsonCodec struct{}

func (jsonCodec) Marshal(v any) ([]byte, error)      { return json.Marshal(v) }
func (jsonCodec) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

func ExampleWithCodec() {
	inWorld(2, func(ctx context.Context, world *comm.Group) error {
		group, err := comm.NewGroup(ctx, world, []int{0, 1}, comm.WithCodec(jsonCodec{}), comm.WithObjectLimit(1000))
		if err != nil {
			return err
		}
		_, err = comm.GatherObject(ctx, group, make(chan int), 0)
		var object *comm.ObjectError
		if world.Rank() == 1 && errors.As(err, &object) {
			fmt.Println(err)
		}
		return nil
	})
	// Output: comm: GatherObject #1: object of rank 0: cannot be encoded: json: unsupported type: chan int
}
