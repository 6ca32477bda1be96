// Deploylint reads the files for operators as their users do: manifests with the types of Kubernetes' API, where an
// unknown field is an error. It reads compose files with the loader and the schema of Compose, and builds the overlays
// of kustomize. kube-score judges the quality of a manifest; deploylint -build prints those of an overlay for it.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"go.yaml.in/yaml/v3"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	strict "sigs.k8s.io/yaml"
)

// kinds are the kinds in use; another one is added here.
var kinds = map[string]func() any{
	"v1/Secret":                          func() any { return new(core.Secret) },
	"v1/Service":                         func() any { return new(core.Service) },
	"apps/v1/StatefulSet":                func() any { return new(apps.StatefulSet) },
	"policy/v1/PodDisruptionBudget":      func() any { return new(policy.PodDisruptionBudget) },
	"networking.k8s.io/v1/NetworkPolicy": func() any { return new(networking.NetworkPolicy) },
}

func main() {
	if len(os.Args) == 4 && os.Args[1] == "-build" {
		text, err := build(os.Args[2], os.Args[3])
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[3], err)
			os.Exit(1)
		}
		os.Stdout.Write(text)
		return
	}
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: deploylint DIR, or deploylint -build DIR OVERLAY")
		os.Exit(2)
	}
	manifests, _ := filepath.Glob(filepath.Join(os.Args[1], "kubernetes", "castellan.yaml"))
	overlays, _ := filepath.Glob(filepath.Join(os.Args[1], "kustomize", "*"))
	compose, _ := filepath.Glob(filepath.Join(os.Args[1], "*.yaml"))
	if len(manifests) == 0 || len(overlays) == 0 || len(compose) == 0 {
		fmt.Fprintf(os.Stderr, "deploylint: nothing to read in %s\n", os.Args[1])
		os.Exit(1)
	}
	failed := false
	check := func(file string, read func(string) error) {
		if err := read(file); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", file, err)
			failed = true
		}
	}
	for _, file := range manifests {
		check(file, readManifests)
	}
	for _, folder := range overlays {
		check(folder, func(string) error {
			text, err := build(os.Args[1], filepath.Join("kustomize", filepath.Base(folder)))
			if err != nil {
				return err
			}
			return readDocuments(text)
		})
	}
	for _, file := range compose {
		check(file, readCompose)
	}
	if failed {
		os.Exit(1)
	}
}

func readManifests(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return readDocuments(text)
}

func readDocuments(text []byte) error {
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var doc map[string]any
		if err := d.Decode(&doc); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		kind := fmt.Sprintf("%v/%v", doc["apiVersion"], doc["kind"])
		made := kinds[kind]
		if made == nil {
			return fmt.Errorf("%s is none of the kinds that deploylint knows", kind)
		}
		one, err := yaml.Marshal(doc)
		if err != nil {
			return err
		}
		read := made()
		if err := strict.UnmarshalStrict(one, read); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		if nodes, ok := read.(*apps.StatefulSet); ok {
			for _, c := range nodes.Spec.Template.Spec.Containers {
				set := map[string]bool{}
				for _, v := range c.Env {
					set[v.Name] = v.Value != "" || v.ValueFrom != nil
				}
				if err := behindProxy(c.Name, set); err != nil {
					return err
				}
			}
		}
	}
}

// behindProxy requires that a node trusts the proxy in front of it. Without that every client has the proxy's address,
// and a limit for one client limits all of them.
func behindProxy(name string, set map[string]bool) error {
	if set["CASTELLAN_CLUSTER_GOSSIP_ADDR"] && !set[trustedProxies] {
		return fmt.Errorf("%s: %s is not set", name, trustedProxies)
	}
	return nil
}

const trustedProxies = "CASTELLAN_HTTP_TRUSTED_PROXIES"

func readCompose(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	project, err := loader.LoadWithContext(context.Background(), types.ConfigDetails{
		WorkingDir:  filepath.Dir(file),
		ConfigFiles: []types.ConfigFile{{Filename: file, Content: text}},
		Environment: types.Mapping{"POSTGRES_PASSWORD": "secret"}, // the one that has no default
	})
	if err != nil {
		return err
	}
	if len(project.Services) == 0 {
		return errors.New("no services")
	}
	for name, s := range project.Services {
		set := map[string]bool{}
		for key, value := range s.Environment {
			set[key] = value != nil && *value != ""
		}
		if err := behindProxy(name, set); err != nil {
			return err
		}
	}
	return nil
}
