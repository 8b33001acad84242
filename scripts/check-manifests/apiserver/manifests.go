package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

// namespace is that of the objects, if they are in one.
const namespace = "default"

// check asks the server whether it would take the documents of a manifest, of which name is the file.
func (s *server) check(ctx context.Context, name string, manifest []byte) error {
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
	var errs []error
	for i := 1; ; i++ {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return errors.Join(errs...)
		}
		if err == nil {
			err = s.create(ctx, text, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: document %d: %w", name, i, err))
		}
	}
}

// create asks the server to create the object in a document.
func (s *server) create(ctx context.Context, document []byte, how metav1.CreateOptions) error {
	var object unstructured.Unstructured
	if err := yaml.Unmarshal(document, &object.Object); err != nil {
		return err
	}
	resource, err := s.resource(object.GroupVersionKind())
	if err == nil {
		_, err = resource.Create(ctx, &object, how)
	}
	return err
}

// resource is where the server has objects of a kind.
func (s *server) resource(kind schema.GroupVersionKind) (dynamic.ResourceInterface, error) {
	groups, err := restmapper.GetAPIGroupResources(s.kinds)
	if err != nil {
		return nil, err
	}
	mapping, err := restmapper.NewDiscoveryRESTMapper(groups).RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	resource := s.objects.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return resource.Namespace(namespace), nil
	}
	return resource, nil
}
