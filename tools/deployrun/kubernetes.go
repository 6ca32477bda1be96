package main

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// notPlayed are kinds that only deploylint reads: a Service is played as one address over the ready pods.
var notPlayed = []string{"Service", "PodDisruptionBudget", "NetworkPolicy"}

// cluster is a namespace of Kubernetes with one StatefulSet.
type cluster struct {
	image   *image
	work    string
	set     *manifest
	secrets map[string]map[string][]byte

	mu    sync.Mutex
	pods  []*container
	ready []bool
	next  int
}

const podNetwork = "10.244.0."

func (k *cluster) apply(text []byte) error {
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var node yaml.Node
		var kind struct{ Kind string }
		if err := d.Decode(&node); errors.Is(err, io.EOF) {
			return k.startAll()
		} else if err := errors.Join(err, node.Decode(&kind)); err != nil {
			return err
		}
		if slices.Contains(notPlayed, kind.Kind) {
			continue
		}
		one, err := yaml.Marshal(&node)
		if err != nil {
			return err
		}
		m := new(manifest)
		strict := yaml.NewDecoder(bytes.NewReader(one))
		strict.KnownFields(true)
		if err := strict.Decode(m); err != nil {
			return fmt.Errorf("%s: %w", kind.Kind, err)
		}
		switch kind.Kind {
		case "Secret":
			data := map[string][]byte{}
			for key, value := range m.Data {
				if data[key], err = base64.StdEncoding.DecodeString(value); err != nil {
					return err
				}
			}
			k.secrets[m.Metadata.Name] = data
		case "StatefulSet":
			k.set = m
		default:
			return fmt.Errorf("unknown kind %s", kind.Kind)
		}
	}
}

// startAll starts all pods at once.
func (k *cluster) startAll() error {
	n := k.set.Spec.Replicas
	if k.set.Spec.PodManagementPolicy != "Parallel" {
		return errors.New("pods that start one by one are not known")
	}
	k.pods, k.ready = make([]*container, n), make([]bool, n)
	for i := range n {
		if err := k.startPod(i); err != nil {
			return err
		}
	}
	return nil
}

func (k *cluster) podName(i int) string { return fmt.Sprint(k.set.Metadata.Name, "-", i) }
func podIP(i int) string                { return fmt.Sprint(podNetwork, 10+i) }

func (k *cluster) startPod(i int) error {
	spec := k.set.Spec.Template.Spec
	of, sec := spec.Containers[0], spec.Security
	if len(spec.Containers) != 1 || spec.Token || of.Security.Escalation || !sec.NonRoot {
		return errors.New("a pod with more than one container, or with more rights, is not known")
	}
	c := &container{Name: k.podName(i), Root: k.image.Root, Dir: "/", UID: sec.User, GID: sec.Group, IP: podIP(i),
		Env: slices.Clone(k.image.Env), Args: append(slices.Clone(k.image.Start), of.Args...),
		ReadOnly: of.Security.ReadOnly, NoNewPrivs: true, NoCaps: slices.Equal(of.Security.Caps.Drop, []string{"ALL"})}
	known := []string{} // $(NAME) in later values
	for _, e := range of.Env {
		value := e.Value
		switch from := e.From; {
		case from.Field.FieldPath == "metadata.name":
			value = c.Name
		case from.Field.FieldPath == "status.podIP":
			value = c.IP
		case from.Secret.Name != "":
			secret, ok := k.secrets[from.Secret.Name][from.Secret.Key]
			if !ok {
				return fmt.Errorf("%s: no key %s in the secret %s", e.Name, from.Secret.Key, from.Secret.Name)
			}
			value = string(secret)
		case from.Field.FieldPath != "":
			return fmt.Errorf("%s: unknown field %s", e.Name, from.Field.FieldPath)
		}
		value = strings.NewReplacer(known...).Replace(value)
		known = append(known, "$("+e.Name+")", value)
		c.Env = append(c.Env, e.Name+"="+value)
	}
	hosts := filepath.Join(k.work, "hosts")
	c.Mounts = append(c.Mounts, mount{From: hosts, To: "/etc/hosts"})
	folders := map[string]string{}
	for _, claim := range k.set.Spec.Claims {
		folder := filepath.Join(k.work, claim.Metadata.Name+"-"+c.Name)
		if err := os.MkdirAll(folder, 0o755); err != nil { // #nosec G301: as a new disk
			return err
		}
		folders[claim.Metadata.Name] = folder
		if err := own(folder, sec.FSGroup, 0o660); err != nil {
			return err
		}
	}
	for _, v := range spec.Volumes {
		folder := filepath.Join(k.work, v.Name+"-"+c.Name)
		folders[v.Name] = folder
		if err := k.secretVolume(folder, v.Secret.Name, v.Secret.Mode, func(add func(key, path string)) {
			for _, it := range v.Secret.Items {
				add(it.Key, it.Path)
			}
		}); err != nil {
			return err
		}
		if err := own(folder, sec.FSGroup, 0o440); err != nil {
			return err
		}
	}
	for _, m := range of.Mounts {
		from, err := filepath.EvalSymlinks(filepath.Join(folders[m.Name], strings.NewReplacer(known...).Replace(m.SubPath)))
		if err != nil {
			return err
		}
		c.Mounts = append(c.Mounts, mount{From: from, To: m.Path, ReadOnly: m.ReadOnly})
	}
	for _, path := range k.image.Volumes {
		if !slices.ContainsFunc(c.Mounts, func(m mount) bool { return m.To == path }) {
			folder := filepath.Join(k.work, "anonymous-"+c.Name)
			if err := k.image.copyVolume(folder, path); err != nil {
				return err
			}
			c.Mounts = append(c.Mounts, mount{From: folder, To: path})
		}
	}
	k.mu.Lock()
	k.pods[i] = c
	k.mu.Unlock()
	return c.start(k.work)
}

// secretVolume lays a secret as the kubelet does: files of root in a dated folder, behind two symbolic links.
func (k *cluster) secretVolume(folder, secret string, mode int, items func(add func(key, path string))) (err error) {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	const dated = "..2026_11_29"
	items(func(key, path string) {
		data, ok := k.secrets[secret][key]
		if !ok {
			err = errors.Join(err, fmt.Errorf("no key %s in the secret %s", key, secret))
			return
		}
		file := filepath.Join(folder, dated, path)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(file), 0o755), // #nosec G301: as the kubelet does
			os.WriteFile(file, data, 0o600), os.Chmod(file, fs.FileMode(mode))) // #nosec G115: a mode
		first, _, _ := strings.Cut(path, "/")
		_ = os.Symlink(filepath.Join("..data", first), filepath.Join(folder, first))
	})
	return errors.Join(err, os.Symlink(dated, filepath.Join(folder, "..data")))
}

// own gives a volume to the group of fsGroup, as the kubelet does at each start of a pod.
func own(folder string, group int, mode fs.FileMode) error {
	return filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		more := mode
		if d.IsDir() {
			more |= 0o110 | fs.ModeSetgid
		}
		return errors.Join(os.Lchown(path, -1, group), os.Chmod(path, info.Mode()|more))
	})
}

// green waits for the probes of a pod.
func (k *cluster) green(i int) error {
	of := k.set.Spec.Template.Spec.Containers[0]
	for _, p := range []probe{of.Startup, of.Liveness, {Get: of.Readiness.Get, Period: 1, Failures: 60}} {
		for n := 1; k.probe(i, p) != nil; n++ {
			if n >= p.Failures || !k.pods[i].lives() {
				text, _ := os.ReadFile(k.pods[i].logFile())
				return fmt.Errorf("%s: %s: %w\n%s", k.podName(i), p.Get.Path, k.probe(i, p), text)
			}
			time.Sleep(time.Duration(p.Period) * time.Second)
		}
	}
	k.mark(i, true)
	return nil
}

func (k *cluster) mark(i int, ready bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ready[i] = ready
}

func (k *cluster) probe(i int, p probe) error {
	for _, port := range k.set.Spec.Template.Spec.Containers[0].Ports {
		if port.Name == p.Get.Port {
			url := "http://" + podIP(i) + ":" + strconv.Itoa(port.Port) + p.Get.Path
			client := http.Client{Timeout: time.Second}
			a, err := client.Get(url)
			if err == nil && a.StatusCode != http.StatusOK {
				err = errors.New(a.Status)
			}
			return err
		}
	}
	return fmt.Errorf("no port %s", p.Get.Port)
}

// pick is the Service: a ready pod in turn.
func (k *cluster) pick() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	for range k.ready {
		k.next++
		if i := k.next % len(k.ready); k.ready[i] {
			return podIP(i) + ":8080"
		}
	}
	return podNetwork + "1:1"
}

// restart is the rolling update of a StatefulSet: from the last pod to the first, each ready before the next.
func (k *cluster) restart() error {
	for i := len(k.pods) - 1; i >= 0; i-- {
		k.mark(i, false)
		err := k.pods[i].stop(time.Duration(k.set.Spec.Template.Spec.Grace) * time.Second)
		if err := errors.Join(err, k.startPod(i)); err != nil {
			return err
		}
		if err := k.green(i); err != nil {
			return err
		}
	}
	return nil
}

// kubectl plays one call.
func (k *cluster) kubectl(c command) (string, error) {
	args := c.Args
	switch {
	case slices.Equal(args, []string{"apply", "-k", "."}):
		made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), c.Dir)
		if err != nil {
			return "", err
		}
		text, err := made.AsYaml()
		if err != nil {
			return "", err
		}
		return "", k.apply(text)
	case len(args) == 3 && args[0] == "apply" && args[1] == "-f":
		text, err := os.ReadFile(filepath.Join(c.Dir, args[2]))
		if err != nil {
			return "", err
		}
		return "", k.apply(text)
	case len(args) > 4 && slices.Equal(args[:3], []string{"create", "secret", "generic"}):
		data := map[string][]byte{}
		for _, arg := range args[4:] {
			if literal, ok := strings.CutPrefix(arg, "--from-literal="); ok {
				key, value, _ := strings.Cut(literal, "=")
				data[key] = []byte(value)
				continue
			}
			file, ok := strings.CutPrefix(arg, "--from-file=")
			key, path, named := strings.Cut(file, "=")
			if !named {
				key, path = filepath.Base(file), file
			}
			text, err := os.ReadFile(filepath.Join(c.Dir, path))
			if err != nil || !ok {
				return "", fmt.Errorf("%s: %w", arg, err)
			}
			data[key] = text
		}
		k.secrets[args[3]] = data
		return "", nil
	case len(args) > 4 && slices.Equal(args[:2], []string{"exec", "-i"}) && args[3] == "--":
		for i, pod := range k.pods {
			if k.podName(i) == args[2] {
				return pod.exec(c.Stdin, args[4:]...)
			}
		}
	case slices.Equal(args, []string{"rollout", "status", "statefulset/castellan"}):
		for i := range k.pods {
			if err := k.green(i); err != nil {
				return "", err
			}
		}
		return "", nil
	case slices.Equal(args, []string{"rollout", "restart", "statefulset/castellan"}):
		return "", k.restart()
	}
	return "", fmt.Errorf("deployrun does not know kubectl %q", args)
}
