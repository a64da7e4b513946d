package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/configstamp/configstamp/e2e/faults/judge"
)

// Batch is some perturbed runs at once, each in a namespace of its own.
type Batch struct {
	Court *Court
	// Seed decides what users do, which mishaps come, and what each rule's dice show.
	Seed uint64
	Runs int

	hiding   bool
	mishaps  []string
	lives    []*Life
	before   map[string]float64
	written  int
	times    []string
	restarts []string
	// What pins have come to.
	counts     judge.Counts
	unpinned   []judge.Violation
	failedOpen float64
}

const (
	// steps is how much each user does, and pause the longest that he rests.
	steps = 12
	pause = time.Second
	// What each does after the healing, in which time snapshots are collected.
	calmSteps = 8
	calmPause = 3 * time.Second
	// truth is how long everything may take to carry the truth after the healing:
	// a lease that nobody gave back, and the backoff that failures have led to.
	truth = 75 * time.Second
	// quiet is how long nothing may happen after that.
	quiet = 1500 * time.Millisecond
)

// Run lets it all happen, and returns what the judge found, by namespace.
func (b *Batch) Run(ctx context.Context) (failures []string, err error) {
	random := rand.New(rand.NewPCG(b.Seed, 0))
	b.hiding = random.IntN(3) == 0
	if b.failedOpen, err = b.Court.failedOpen(ctx); err != nil {
		return nil, err
	}
	b.before = b.goroutines()
	defer func() {
		for _, life := range b.lives {
			_ = life.Close(context.WithoutCancel(ctx))
		}
	}()
	supervised := b.Court.Supervise()
	defer func() { b.restarts = supervised() }()
	begin := time.Now()
	lap := func(what string) {
		b.times = append(b.times, fmt.Sprintf("%s %.1fs", what, time.Since(begin).Seconds()))
		begin = time.Now()
	}
	if err := b.open(ctx); err != nil {
		return nil, err
	}
	lap("begun")
	if err := b.perturb(ctx, random); err != nil {
		return nil, err
	}
	lap("perturbed")
	if err := b.Court.Heal(ctx, b.hiding); err != nil {
		return nil, err
	}
	if err := together(b.lives, len(b.lives), func(life *Life) error {
		life.often = 3
		return life.Live(ctx, calmSteps, calmPause)
	}); err != nil {
		return nil, err
	}
	lap("calm")
	if err := together(b.lives, len(b.lives), (*Life).Mend); err != nil {
		return nil, err
	}
	failures, err = b.judge(ctx)
	lap("true")
	if err != nil {
		return failures, err
	}
	return append(failures, b.leaks()...), nil
}

func (b *Batch) open(ctx context.Context) error {
	var numbers []int
	b.lives = make([]*Life, b.Runs)
	for i := range b.Runs {
		numbers = append(numbers, i)
	}
	return together(numbers, 8, func(i int) error {
		trial, err := b.Court.Open(ctx, fmt.Sprintf("random-%d-%d-%x", b.Seed, i, time.Now().UnixNano()&0xffff), "enabled")
		if err != nil {
			return err
		}
		b.lives[i] = NewLife(trial, b.Seed, uint64(i+1))
		return b.lives[i].Begin()
	})
}

// perturb has all users live and mishaps come, one after the other.
func (b *Batch) perturb(ctx context.Context, random *rand.Rand) error {
	for _, life := range b.lives {
		b.Court.hinder(life.Namespace, random, b.hiding)
	}
	living, stop := context.WithCancel(ctx)
	defer stop()
	mishap := make(chan error, 1)
	go func() {
		all := mishaps()
		for living.Err() == nil {
			one := all[random.IntN(len(all))]
			b.mishaps = append(b.mishaps, one.Name)
			if err := one.do(ctx, b.Court, random); err != nil {
				mishap <- fmt.Errorf("%s: %w", one.Name, err)
				return
			}
			time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
		}
		mishap <- nil
	}()
	err := together(b.lives, len(b.lives), func(life *Life) error { return life.Live(ctx, steps, pause) })
	stop()
	return errors.Join(err, <-mishap)
}

// judge waits for the truth, and then has every history judged.
func (b *Batch) judge(ctx context.Context) ([]string, error) {
	untrue := make([][]judge.Violation, len(b.lives))
	indices := make([]int, len(b.lives))
	for i := range indices {
		indices[i] = i
	}
	err := together(indices, len(indices), func(i int) (err error) {
		untrue[i], err = b.lives[i].Converge(ctx, truth)
		return err
	})
	if err != nil {
		return nil, err
	}
	time.Sleep(quiet)
	var failures []string
	for i, life := range b.lives {
		found, err := life.Verdict(ctx)
		if err != nil {
			return nil, err
		}
		if err := b.pinned(life); err != nil {
			return nil, err
		}
		if history, _, err := life.History(); err == nil {
			b.written += len(history.Events)
		}
		if found = append(found, untrue[i]...); len(found) > 0 {
			failures = append(failures, fmt.Sprintf("%s: %v\ndid: %s\n%s", life.Namespace, found, life.Steps(), life.Report()))
		}
	}
	unanswered, err := b.unanswered(ctx)
	return append(failures, unanswered...), err
}

// goroutines are how many each process has, but for the two of each connection:
// those that idle are closed after a while.
func (b *Batch) goroutines() map[string]float64 {
	counts := map[string]float64{}
	for _, process := range b.Court.Run.Product.All() {
		if values, err := process.Metrics(); err == nil {
			counts[process.Name] = values["go_goroutines"] - 2*values["process_open_fds"]
		}
	}
	return counts
}

// leaks tells of a process that has more goroutines than before, and keeps them.
func (b *Batch) leaks() []string {
	const more = 35 // a leader's workers, its watch of Pods, and its collection of snapshots
	var leaks []string
	for deadline := time.Now().Add(15 * time.Second); ; time.Sleep(500 * time.Millisecond) {
		leaks = nil
		for name, now := range b.goroutines() {
			if was, ok := b.before[name]; ok && now > was+more {
				leaks = append(leaks, fmt.Sprintf("%s had %v goroutines before and has %v", name, was, now))
			}
		}
		if len(leaks) == 0 || time.Now().After(deadline) {
			return leaks
		}
	}
}

// Mishaps are what befell the processes.
func (b *Batch) Mishaps() string {
	text := strings.Join(b.mishaps, "; ")
	if b.hiding {
		text = "events are hidden; " + text
	}
	return text
}

// Summary is what it took.
func (b *Batch) Summary() string {
	return fmt.Sprintf("%d writes judged, %s, %d processes ended by themselves; %s", b.written, strings.Join(b.times, ", "), len(b.restarts), b.counts)
}
