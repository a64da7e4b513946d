package rollout_test

import (
	"testing"
	"time"
)

// What must not halt a change: a good edit reaches all, whatever else happens to workloads
// meanwhile.
func TestStory_WhatMustNotHalt(t *testing.T) {
	each := func(w *world, do func(n int, a *app)) {
		for n, ref := range w.refs() {
			do(n, w.apps[ref])
		}
	}
	lackOne := func(w *world) {
		each(w, func(_ int, a *app) { a.lacks = 1 })
	}
	for sentence, c := range map[string]struct {
		before, during func(w *world)
	}{
		"every pod is evicted once": {during: func(w *world) {
			each(w, func(n int, a *app) {
				for pod := range a.replicas {
					w.at(time.Duration(n+30*pod)*time.Second, func() { w.evict(a, 15*time.Second) })
				}
			})
		}},
		"nodes are replaced one by one": {during: func(w *world) {
			for node := range 20 {
				w.at(time.Duration(node)*time.Minute, func() {
					each(w, func(n int, a *app) {
						if (n+node)%3 == 0 {
							w.evict(a, 90*time.Second)
						}
					})
				})
			}
		}},
		"a zone dies": {during: func(w *world) {
			each(w, func(_ int, a *app) { w.lose(a, 1) })
		}},
		"a zone dies, and comes back": {during: func(w *world) {
			each(w, func(_ int, a *app) { w.lose(a, 1) })
			w.at(20*time.Minute, func() { each(w, func(_ int, a *app) { w.lose(a, 0) }) })
		}},
		"all, which lack a pod, are scaled to half, and back": {before: lackOne, during: func(w *world) {
			each(w, func(_ int, a *app) { w.scale(a, 2) })
			w.at(10*time.Minute, func() { each(w, func(_ int, a *app) { w.scale(a, 4) }) })
		}},
		"all are scaled up, and find no nodes": {during: func(w *world) {
			each(w, func(_ int, a *app) { w.scale(a, 8); w.lose(a, 4) })
		}},
		"all are scaled to nothing, and back": {during: func(w *world) {
			each(w, func(_ int, a *app) { w.mute(a) })
			w.at(10*time.Minute, func() { each(w, func(_ int, a *app) { w.unmute(a) }) })
		}},
		"an autoscaler scales all, which lack a pod": {before: lackOne, during: func(w *world) {
			for step := range 90 { // up for a minute, down for a quarter of an hour
				w.at(time.Duration(step)*20*time.Second, func() {
					each(w, func(_ int, a *app) { w.scale(a, map[bool]int{true: 6, false: 2}[step%45 < 3]) })
				})
			}
		}},
		"each app crashes once at each start": {before: func(w *world) {
			each(w, func(_ int, a *app) { a.stumbles = 25 * time.Second })
		}},
		"each pod restarts once a day": {before: func(w *world) {
			each(w, func(n int, a *app) {
				for day := range 3 {
					w.at(time.Duration(day)*24*time.Hour+time.Duration(n)*7*time.Second, func() { w.crashOnce(a) })
				}
			})
		}},
		"minReadySeconds is longer than the deadline": {before: func(w *world) {
			w.limits.RolloutDeadline = 5 * time.Minute
			each(w, func(_ int, a *app) {
				a.batch, a.pace, a.minReady = a.replicas, 6*time.Minute+4*time.Second, 6*time.Minute
			})
		}},
	} {
		for _, passed := range []time.Duration{0, 4 * time.Second, 40 * time.Second, 80 * time.Second} {
			t.Run(sentence+", "+passed.String(), func(t *testing.T) {
				w := fleet(t, 12)
				for _, a := range w.apps {
					a.replicas = 4
				}
				if c.before != nil {
					c.before(w)
				}
				w.lead()
				w.pass(time.Minute)
				w.tell("Twelve Deployments take a good edit. Meanwhile "+sentence+".", false)
				w.edit(web, w.content(fine))
				w.pass(passed)
				if c.during != nil {
					c.during(w)
				}
				w.pass(20 * time.Hour)
				w.checkRolled(12)
				w.checkHalts(0)
			})
		}
	}
}

// evict has a workload lack a pod for a while, whose successor starts then.
func (w *world) evict(a *app, lacks time.Duration) {
	a.disturbed = w.now.Add(lacks)
	w.follow(a)
	w.at(lacks, func() {
		a.drained = w.now
		w.follow(a)
	})
}

// lose has some pods of a workload wait for a node from now on.
func (w *world) lose(a *app, pods int) {
	a.lacks = pods
	w.follow(a)
}

// scale has somebody scale a workload.
func (w *world) scale(a *app, replicas int) {
	a.renews(w.now, replicas)
	a.replicas = replicas
	w.follow(a)
}

// crashOnce has the container of a pod restart, which takes some seconds.
func (w *world) crashOnce(a *app) {
	a.restarted, a.disturbed = w.now.Add(3*time.Second), w.now.Add(3*time.Second)
	w.follow(a)
}
