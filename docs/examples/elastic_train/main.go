// Elastic_train: data-parallel training that goes on where it was when ranks die. The ranks train a classifier of iris flowers by stochastic
// gradient descent. Here ranks 1 and 0 kill themselves in the middle of their work; gorun starts them again, and they get weights, momentum and
// step from the others. The final weights equal those of a run without failures, with any number of ranks, bit for bit.
//
//	gorun --nproc-per-node=3 --max-restarts=2 --on-failure=replace ./docs/examples/elastic_train --kill=1@33,0@71
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"

	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/comm/elastic"
)

const (
	steps       = 100
	batchSize   = 30 // of all ranks together
	commitEvery = 5
	reportEvery = 25
)

func main() {
	log.SetFlags(0)
	kill := flag.String("kill", "", "`RANK@STEP,...`: which rank kills itself in which step: the first in the first life of the job, the second after a restart, and so on")
	exact := flag.Bool("exact", false, "print all digits of the final weights")
	flag.Parse()
	if err := run(context.Background(), parseKills(*kill), *exact); err != nil {
		log.Print("elastic_train: ", err)
		os.Exit(comm.ExitCode(err))
	}
}

func run(ctx context.Context, kills []kill, exact bool) error {
	data, err := readFlowers()
	if err != nil {
		return err
	}
	// Everything that a step changes and that later steps need is in the state. All ranks have the same.
	step, weights, momentum := 0, make(model, parameters), make(model, parameters)
	state, err := elastic.NewState(
		elastic.Value("step", &step),
		elastic.Slice("weights", weights),
		elastic.Slice("momentum", momentum),
	)
	if err != nil {
		return err
	}
	// Run calls this function in every world, with the state of the last commit.
	return elastic.Run(ctx, state, func(ctx context.Context, world *comm.Group) error {
		for step < steps {
			killSelf(kills, world.Rank(), step)
			gradient, err := gradientOf(ctx, world, weights, batch(data, step))
			if err != nil {
				return err
			}
			descend(weights, momentum, gradient)
			step++
			if step%commitEvery != 0 {
				continue
			}
			if err := state.Commit(); err != nil {
				return err
			}
			if step%reportEvery == 0 && world.Rank() == 0 {
				loss, correct := evaluate(weights, data)
				fmt.Printf("step %d: loss %.3f, %d of %d flowers recognised\n", step, loss, correct, len(data))
			}
		}
		if exact && world.Rank() == 0 {
			fmt.Printf("weights %x\n", weights)
		}
		return nil
	})
}

// batch returns the flowers of a step. They depend on the step alone, neither on the rank nor on the number of ranks.
func batch(data []flower, step int) []flower {
	perEpoch := len(data) / batchSize
	order := rand.New(rand.NewPCG(1936, uint64(step/perEpoch))).Perm(len(data))
	list := make([]flower, batchSize)
	for i := range list {
		list[i] = data[order[step%perEpoch*batchSize+i]]
	}
	return list
}

// gradientOf returns the mean gradient of a batch. Each rank computes the gradients of its part of the flowers. Then all ranks gather the
// gradients of all flowers, and add them in the order of the flowers. An all-reduce would move less, but add in an order that depends on the
// number of ranks, and floating-point sums depend on the order.
func gradientOf(ctx context.Context, world *comm.Group, weights model, flowers []flower) (model, error) {
	gradients := make(model, len(flowers)*parameters)
	parts := make([][]float64, world.Size())
	for r := range parts {
		from, to := r*len(flowers)/world.Size(), (r+1)*len(flowers)/world.Size()
		parts[r] = gradients[from*parameters : to*parameters]
		if r == world.Rank() {
			for i, f := range flowers[from:to] {
				weights.gradient(f, parts[r][i*parameters:][:parameters])
			}
		}
	}
	own := append([]float64{}, parts[world.Rank()]...)
	if err := comm.AllGatherV(ctx, world, parts, own); err != nil {
		return nil, err
	}
	mean := make(model, parameters)
	for i, g := range gradients {
		mean[i%parameters] += g / float64(len(flowers))
	}
	return mean, nil
}

// A kill is the end of a rank at the beginning of a step.
type kill struct{ rank, step int }

func parseKills(list string) (kills []kill) {
	for entry := range strings.SplitSeq(list, ",") {
		if entry == "" {
			continue
		}
		rank, step, _ := strings.Cut(entry, "@")
		r, err := strconv.Atoi(rank)
		s, err2 := strconv.Atoi(step)
		if err != nil || err2 != nil {
			log.Printf("elastic_train: --kill=%s: want RANK@STEP,...", list)
			os.Exit(2)
		}
		kills = append(kills, kill{r, s})
	}
	return kills
}

// killSelf kills this process if it is its turn.
func killSelf(kills []kill, rank, step int) {
	restarts, _ := strconv.Atoi(os.Getenv("TORCHELASTIC_RESTART_COUNT")) // which Run keeps up to date
	if restarts < len(kills) && kills[restarts] == (kill{rank, step}) {
		if p, err := os.FindProcess(os.Getpid()); err == nil {
			_ = p.Kill()
		}
	}
}
