"""The methods, one module each: their steps in their order, with parties and costs."""
