package main

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

//go:embed iris.csv
var irisCSV string

var speciesNames = []string{"setosa", "versicolor", "virginica"}

const (
	species    = 3
	inputs     = 5 // four measures, and 1
	parameters = species * inputs
)

// A flower is one line of the data.
type flower struct {
	inputs  [inputs]float64
	species int
}

// readFlowers reads the data, and scales every measure to a mean of 0 and a standard deviation of 1.
func readFlowers() ([]flower, error) {
	var data []flower
	for line := range strings.Lines(irisCSV) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(strings.TrimSpace(line), ",")
		f := flower{species: slices.Index(speciesNames, fields[len(fields)-1])}
		if len(fields) != inputs || f.species < 0 {
			return nil, fmt.Errorf("iris.csv: want four measures and a species, not %q", line)
		}
		f.inputs[inputs-1] = 1
		for i, field := range fields[:inputs-1] {
			var err error
			if f.inputs[i], err = strconv.ParseFloat(field, 64); err != nil {
				return nil, fmt.Errorf("iris.csv: %w", err)
			}
		}
		data = append(data, f)
	}
	for i := range inputs - 1 {
		var sum, squares float64
		for _, f := range data {
			sum += f.inputs[i]
		}
		mean := sum / float64(len(data))
		for _, f := range data {
			squares += (f.inputs[i] - mean) * (f.inputs[i] - mean)
		}
		deviation := math.Sqrt(squares / float64(len(data)))
		for n := range data {
			data[n].inputs[i] = (data[n].inputs[i] - mean) / deviation
		}
	}
	return data, nil
}

// A model is the weights of a softmax regression, or a gradient: for each species, one number for each input.
type model []float64

// predict returns how probable each species is.
func (m model) predict(f flower) (p [species]float64) {
	var sum float64
	for s := range p {
		for i, x := range f.inputs {
			p[s] += m[s*inputs+i] * x
		}
		p[s] = math.Exp(p[s])
		sum += p[s]
	}
	for s := range p {
		p[s] /= sum
	}
	return p
}

// gradient sets out to the gradient of the loss for one flower.
func (m model) gradient(f flower, out model) {
	for s, p := range m.predict(f) {
		if s == f.species {
			p--
		}
		for i, x := range f.inputs {
			out[s*inputs+i] = p * x
		}
	}
}

// descend takes a step.
func descend(weights, momentum, gradient model) {
	for i, g := range gradient {
		momentum[i] = 0.9*momentum[i] + g
		weights[i] -= 0.1 * momentum[i]
	}
}

// evaluate returns the mean loss, and the number of flowers whose species is the most probable one.
func evaluate(m model, data []flower) (loss float64, correct int) {
	for _, f := range data {
		p := m.predict(f)
		loss -= math.Log(p[f.species]) / float64(len(data))
		if p[f.species] == max(p[0], p[1], p[2]) {
			correct++
		}
	}
	return loss, correct
}
