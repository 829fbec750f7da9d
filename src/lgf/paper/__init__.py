"""The method of the paper "Neuro-Symbolic ODE Discovery with Latent Grammar Flow", a module for each of its sections.

2.1  grammar-based representation     derivations/
2.2  discrete latent embedding        autoencoder/
2.3  behavioural latent distance      behavioural_distance, corpus
2.4  discrete flow and guidance       flow/
2.5  discovery                        discovery/
     training                         training/ (torch), bundle (trained models)
"""
