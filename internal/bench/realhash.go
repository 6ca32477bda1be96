package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/crypto/argon2"

	"castellan/cmd/app"
	"castellan/config"
	hashing "castellan/domain/account/password"
	"castellan/domain/account/password/argon2id"
)

// hashed returns settings with their hasher, and the hash of the password.
func hashed(settings []string) (cfg config.Config, h *hashing.Hasher, hash string) {
	cfg = need(config.Load("", append(environ(), settings...)))
	h = need(app.NewHasher(cfg))
	return cfg, h, need(h.Hash(context.Background(), password))
}

// hashTime returns the processor time of a password verification under the settings, on average of n.
func hashTime(settings []string, n int) time.Duration {
	_, h, stored := hashed(settings)
	return verifyTime(h, stored, n)
}

func verifyTime(h *hashing.Hasher, stored string, n int) time.Duration {
	began := own()
	for range n {
		if right, _, err := h.Verify(context.Background(), password, stored); err != nil || !right {
			must(fmt.Errorf("verify a password: right %v, %w", right, err))
		}
	}
	return (own() - began) / time.Duration(n)
}

// hashes compares a hash of the default parameters with one of x/crypto, in turns.
func (b *bench) hashes() {
	cfg, h, stored := hashed(lively())
	p, salt := cfg.Password, make([]byte, 16)
	of := series{}
	for range b.many(40, 40, 2) {
		ours := verifyTime(h, stored, 1)
		between := own()
		argon2.IDKey([]byte(password), salt, uint32(p.Argon2Time), uint32(p.Argon2MemoryKiB), uint8(p.Argon2Parallelism), 32)
		of.add("ours", ours.Seconds()*1e3)
		of.add("theirs", (own()-between).Seconds()*1e3)
	}
	limit := map[string]float64{"avx512": 0.30, "avx2": 0.40, "go": 1}[argon2id.Vectors()]
	r := &b.report
	r.line("argon2id with "+argon2id.Vectors()+": CPU of a hash", "ms", of["ours"], bar{})
	r.line("… of x/crypto's, both at their best", "×",
		[]float64{quantile(of["ours"], 0) / quantile(of["theirs"], 0)}, atMost(limit))
	r.line("… of x/crypto's, medians", "×", []float64{median(of["ours"]) / median(of["theirs"])}, atMost(limit))
}

// cost returns the settings of the hash that -hash selects.
func (b *bench) cost() []string {
	if b.hash == "real" {
		return lively()
	}
	return cheap()
}

// atHalf measures whole returning logins at half of the rate that the service can serve, and adds their times.
func (b *bench) atHalf(s *server, rate float64, round int, of series) {
	pause := time.Duration(float64(b.clients) / (max(rate, 1) / 2) * float64(time.Second)) // a rate of 0 would never end
	began := time.Now()
	until := began.Add(b.long(6 * time.Second))
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	times, failed := make([][]float64, b.clients), make([]error, b.clients)
	var all sync.WaitGroup
	for k := range b.clients {
		v := need(visitorFrom(s, home(k)))
		all.Go(func() {
			defer v.Close()
			at := began.Add(pause * time.Duration(k) / time.Duration(b.clients))
			for i := k; at.Before(until); at, i = at.Add(pause), i+b.clients {
				time.Sleep(time.Until(at))
				if i >= b.people() {
					i = k
				}
				if _, _, failed[k] = v.flow(ctx, account(round, i)); failed[k] != nil {
					return
				}
				times[k] = append(times[k], time.Since(at).Seconds()*1e3)
			}
		})
	}
	all.Wait()
	var took []float64
	for _, t := range times {
		took = append(took, t...)
	}
	of.add("half p50", median(took))
	of.add("half p99", quantile(took, 0.99))
	must(errors.Join(failed...))
}
