//go:build !linux

package core

import (
	"time"

	"github.com/gorun/gorun/comm/internal/endpoint"
)

func processState(int) string { return "" }

func awaitExit(int, time.Duration) endpoint.Fate { return endpoint.Unknown }
