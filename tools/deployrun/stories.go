package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// tryStory is the second way of the README: one container in development mode.
func tryStory(s *session) error {
	words, err := s.words("try.yaml")
	if err != nil {
		return err
	}
	start, end, ok := strings.Cut(words, "\n"+`docker compose --file deploy/try.yaml down --volumes`)
	if !ok || end != "" {
		return errors.New("the header does not end in down --volumes")
	}
	if err := s.follow(start, "", ""); err != nil {
		return err
	}
	if err := s.follow("docker compose --file deploy/try.yaml logs | grep 'Log in as    admin'", "", ""); err != nil {
		return err
	}
	for host, want := range map[string]int{"localhost:8080": 200, "evil.example": 403} {
		if got, err := get("http://127.0.0.1:8080/dev/outbox", host); err != nil || got != want {
			return fmt.Errorf("the outbox as %s: %d, %w", host, got, err)
		}
	}
	return s.follow("docker compose --file deploy/try.yaml down --volumes", "", "")
}

func composeStory(s *session) error {
	words, err := s.words("compose.yaml")
	if err != nil {
		return err
	}
	if err := s.follow(words, "", "correct horse battery staple 1"); err != nil {
		return err
	}
	return s.inUse("http://127.0.0.1:8080", "deploy", "docker compose exec -T node-1", true,
		"docker compose restart node-1", "docker compose restart node-2", "docker compose restart node-3")
}

// pods makes the network of the pods, and an address before the ready ones.
func (s *session) pods() (front string, err error) {
	s.kube = &cluster{image: s.image, work: s.work, secrets: map[string]map[string][]byte{}}
	ips, hosts := []string{}, "127.0.0.1 localhost\n"
	for i := range 3 {
		ips, hosts = append(ips, podIP(i)), hosts+podIP(i)+" castellan-nodes\n"
	}
	if err := os.WriteFile(filepath.Join(s.work, "hosts"), []byte(hosts), 0o644); err != nil { // #nosec G306: pods read it
		return "", err
	}
	if _, err := net.InterfaceByName("brpods"); err != nil {
		if err := network("brpods", podNetwork+"1", append(ips, databaseIP)...); err != nil {
			return "", err
		}
	}
	l, err := forward("127.0.0.1:0", s.kube.pick)
	if err != nil {
		return "", err
	}
	return "http://" + l.Addr().String(), nil
}

func (s *session) stopPods() error {
	var errs []error
	for _, pod := range s.kube.pods {
		errs = append(errs, pod.stop(time.Minute))
	}
	return errors.Join(errs...)
}

const databaseIP = podNetwork + "200"

// database is a PostgreSQL for pods.
func (s *session) database() (url string, stop func(), err error) {
	of, mounts, err := otherImage("postgres", s.work)
	if err != nil {
		return "", nil, err
	}
	c := &container{Name: "database", Root: of.Root, Dir: "/", IP: databaseIP, Args: of.Args, Mounts: mounts,
		Env: append(of.Env, "POSTGRES_USER=castellan", "POSTGRES_DB=castellan", "POSTGRES_PASSWORD=secret")}
	if err := c.start(s.work); err != nil {
		return "", nil, err
	}
	for n := 0; ; n++ {
		_, err := c.exec(nil, "pg_isready", "-h", "127.0.0.1")
		if err == nil {
			return "postgres://castellan:secret@" + databaseIP + ":5432/castellan", func() { _ = c.stop(time.Minute) }, nil
		}
		if n == 60 {
			return "", nil, err
		}
		time.Sleep(time.Second)
	}
}

// inCluster follows the header of a file for Kubernetes, with the values that the operator has.
func (s *session) inCluster(file string, database, files bool) error {
	front, err := s.pods()
	if err != nil {
		return err
	}
	words, err := s.words(file)
	if err != nil {
		return err
	}
	if database {
		url, stop, err := s.database()
		if err != nil {
			return err
		}
		defer stop()
		words = regexp.MustCompile(`postgres://[^ "]+`).ReplaceAllString(words, url)
	}
	dir := filepath.Join("deploy", filepath.Dir(file))
	if err := s.follow(words, dir, "correct horse battery staple 1"); err != nil {
		return err
	}
	if err := s.inUse(front, dir, "kubectl exec -i castellan-0 --", files,
		"kubectl rollout restart statefulset/castellan"); err != nil {
		return err
	}
	return s.stopPods()
}

func sqliteStory(s *session) error {
	return s.inCluster("kustomize/sqlite/kustomization.yaml", false, true)
}

func postgresStory(s *session) error {
	return s.inCluster("kustomize/postgresql/kustomization.yaml", true, false)
}

func kubernetesStory(s *session) error {
	return s.inCluster("kubernetes/castellan.yaml", true, false)
}
