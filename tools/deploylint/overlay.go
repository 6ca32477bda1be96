package main

import (
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// build returns the manifests of an overlay below the folder of deploy files, as kubectl apply -k would send them. The
// files of its secrets, which are not in the repository, are empty.
func build(deploy, overlay string) ([]byte, error) {
	files := filesys.MakeFsInMemory()
	err := filepath.WalkDir(deploy, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(deploy, path)
		if err != nil {
			return err
		}
		return files.WriteFile(filepath.Join("/", below), text)
	})
	if err != nil {
		return nil, err
	}
	folder := filepath.Join("/", overlay)
	text, err := files.ReadFile(filepath.Join(folder, "kustomization.yaml"))
	if err != nil {
		return nil, err
	}
	var made types.Kustomization
	if err := yaml.UnmarshalStrict(text, &made); err != nil {
		return nil, err
	}
	for _, secret := range made.SecretGenerator {
		for _, file := range append(secret.FileSources, secret.EnvSources...) {
			_, path, named := strings.Cut(file, "=")
			if !named {
				path = file
			}
			if err := files.WriteFile(filepath.Join(folder, path), nil); err != nil {
				return nil, err
			}
		}
	}
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, folder)
	if err != nil {
		return nil, err
	}
	return resources.AsYaml()
}
